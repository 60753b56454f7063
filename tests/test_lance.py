"""LanceDB is imported without a client that is never used, and nothing of that shows afterwards."""

from __future__ import annotations

import subprocess
import sys

from tests.conftest import clean_environment


def ran(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], env=clean_environment(), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_the_unused_packages_are_not_imported_and_can_be_imported_later() -> None:
    code = """
import sys
from graphrag_mcp.store.lance import lancedb
database = lancedb()
print("lance_namespace" in sys.modules, "lance_namespace_urllib3_client" in sys.modules)
import lance_namespace
print(lance_namespace.__file__ is not None, issubclass(lance_namespace.LanceNamespace, Exception))
print(lancedb() is database is sys.modules["lancedb"])
"""
    assert ran(code).split() == ["False", "False", "True", "False", "True"]


def test_who_has_imported_it_before_gets_the_same_module() -> None:
    code = """
import lancedb as before
from graphrag_mcp.store.lance import lancedb
import sys
print(lancedb() is before, "lance_namespace" in sys.modules)
"""
    assert ran(code).split() == ["True", "True"]


def test_methods_are_not_compared_with_those_they_override_and_the_package_that_does_so_is_there_later() -> None:
    code = """
import sys
from graphrag_mcp.store.lance import lancedb
database = lancedb()
print("overrides" in sys.modules, database.db.LanceDBConnection.open_table.__name__)
if sys.version_info < (3, 12):
    import overrides
    print(overrides.__file__ is not None, overrides.override is not database.db.override)
"""
    expected = ["False", "open_table"] + ["True", "True"] * (sys.version_info < (3, 12))
    assert ran(code).split() == expected


def test_a_missing_table_is_still_an_error_that_says_so() -> None:
    code = """
import tempfile
from graphrag_mcp.store.lance import lancedb
try:
    lancedb().connect(tempfile.mkdtemp()).open_table("nowhere")
except ValueError as error:
    print("nowhere" in str(error))
"""
    assert ran(code) == "True"


def test_neither_pandas_nor_the_models_of_replies_are_imported_and_both_work_later() -> None:
    code = """
import sys
from graphrag_mcp.store.lance import lancedb
from graphrag_mcp.llm.transport import openai_client
database, client = lancedb(), openai_client()
print("pandas" in sys.modules, any(name.startswith("openai.types") for name in sys.modules))
import pandas, pyarrow, tempfile
print(pyarrow.table({"a": [1]}).to_pandas()["a"].sum() == 1)
table = database.connect(tempfile.mkdtemp()).create_table("t", pandas.DataFrame({"a": [1, 2]}))
print(len(table.to_pandas()) == 2)
from openai.types.chat import ChatCompletion
import openai
print(openai is client, openai.types.chat.ChatCompletion is ChatCompletion)
"""
    assert ran(code).split() == ["False", "False", "True", "True", "True", "True"]
