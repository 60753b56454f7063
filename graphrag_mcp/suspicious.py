"""What in a document reads as if it were written for a model, and what reads as a key.

Takes text; gives the places that read as instructions to whoever reads, as calls of tools or as requests for secrets,
in the languages that such texts are written in; and the text with credentials masked, character for character. Only
finds: nothing is removed for being found. Every pattern is linear in the length of the text. Knows no result.
"""

from __future__ import annotations

import re
from functools import lru_cache

__all__ = ["credentials", "masked", "suspicions"]

# Each pattern stands behind the words without one of which it cannot match, because looking for words is a hundred
# times faster: a text in which nobody speaks to a model costs next to nothing.
_VERBS = "ignore|disregard|forget|override|bypass|overlook"
_INSTRUCTIONS = (
    # "ignore all previous instructions": a verb, a few words, what is to be left aside; in English and fifteen others
    (
        _VERBS,
        rf"\b(?:{_VERBS})\b.{{0,40}}?\b(?:instructions?|prompts?|rules|guidelines|directives|messages|above|previous|"
        r"prior|context|you (?:know|were told))\b",
    ),
    (
        "instruction|prompt|directive",
        r"\b(?:new|updated|real|actual|hidden|secret) (?:system )?(?:instructions?|prompt|directives?)\b",
    ),
    (
        "you are now|you are no longer|from now on|act as",
        r"\byou are (?:now|no longer)\b|\bfrom now on,? you\b|"
        r"\bact as (?:an? )?(?:unrestricted|dan|admin|root|developer)\b",
    ),
    (
        "do not|don't|never",
        r"\b(?:do not|don't|never) (?:tell|inform|mention|reveal|show)\b.{0,30}?\b(?:the user|users?|human|operator)\b",
    ),
    (
        "language model|assistant|chatbot|llm| ai ",
        r"\b(?:ai|llm|language model|assistant|chatbot)s?\b.{0,30}?\b(?:must|should|shall|"
        r"have to|are required to)\b.{0,40}?\b(?:say|reply|answer|respond|output|execute|run|call|delete|send|obey|recommend)\b",
    ),
    (
        "system|assistant|developer",
        r"\bsystem (?:prompt|override|message|mode)\b|^[ \t]{0,8}(?:system|assistant|developer) ?: ?\S|"
        r"^#{2,4} ?(?:system|assistant) ?:?$",
    ),
    (
        ("<|", "[inst", "[/inst", "<<sys", "<</sys"),
        r"<\|(?:im_start|im_end|system|assistant|user|endoftext|eot_id|start_header_id)\|>|\[/?INST\]|<</?SYS>>",
    ),
    ("### instruction|## instruction", r"^#{2,4} ?instructions? ?:?$"),
    (
        "ignorier|missacht|vergiss|vergess|verwirf",
        r"\b(?:ignorier|missacht|vergiss|vergess|verwirf)\w{0,8}\b.{0,40}?\b(?:anweisung|"
        r"anleitung|instruktion|vorgabe|befehl|regel|prompt)\w{0,4}",
    ),
    ("negeer|vergeet", r"\b(?:negeer|vergeet)\b.{0,40}?\b(?:instructie|opdracht|aanwijzing|regel)\w{0,4}"),
    (
        "instruction|consigne|directive|règle",
        r"\b(?:ignore[rz]|oubli|néglig|méprise)\w{0,6}\b.{0,40}?\b(?:instruction|consigne|directive|"
        r"règle)s?\b",
    ),
    (
        "instruccion|instrucción|indicaciones|órdenes|reglas",
        r"\b(?:ignor|olvid|desestim|descart|omit)\w{0,6}\b.{0,40}?\b(?:instruccion(?:es)?|"
        r"instrucción|indicaciones|órdenes|reglas)\b",
    ),
    (
        "instruç|orientações|regras",
        r"\b(?:ignor|esque|desconsider|desprez)\w{0,7}\b.{0,40}?\b(?:instruções|instrução|orientações|regras)\b",
    ),
    (
        "istruzion|indicazioni|direttive|regole",
        r"\b(?:ignor|dimentic|scart|trascur)\w{0,6}\b.{0,40}?\b(?:istruzion[ei]|indicazioni|"
        r"direttive|regole)\b",
    ),
    (
        "gnoruj|zapomn|pomiń|zapomeň",
        r"\b(?:zignoruj|ignoruj|zapomnij|pomiń|zapomeň)\w{0,4}\b.{0,40}?\b(?:instrukc|poleceni|wytyczn|reguł|"
        r"pokyn|příkaz|pravidl)\w{0,4}",
    ),
    ("ignorera|glöm|bortse", r"\b(?:ignorera|glöm|bortse)\b.{0,40}?\b(?:instruktion|anvisning|regler|regel)\w{0,6}"),
    (
        "talimat|yönerge|komut|kural",
        r"\b(?:talimat|yönerge|komut|kural)\w{0,10}\b.{0,20}?\b(?:yok say|unut|görmezden gel|dikkate alma)",
    ),
    ("abaikan|lupakan", r"\b(?:abaikan|lupakan)\b.{0,40}?\b(?:instruksi|perintah|petunjuk|aturan)\b"),
    ("bỏ qua|quên|phớt lờ", r"(?:bỏ qua|quên|phớt lờ)\b.{0,40}?(?:hướng dẫn|chỉ thị|chỉ dẫn|lệnh|quy tắc)"),
    (
        "гнорируй|гноруй|забудь|не обращай|отбрось",
        r"(?:игнорируй|забудь|не обращай внимания|отбрось|ігноруй)\w{0,3}.{0,40}?(?:инструкци|"
        r"указани|правил|команд|інструкці|вказівк)",
    ),
    ("تجاهل|انس|تغاض", r"(?:تجاهل|انس|تغاض).{0,40}?(?:التعليمات|الأوامر|الإرشادات|القواعد)"),
    ("دستور|راهنمای", r"(?:دستور|راهنمای).{0,40}?(?:نادیده|فراموش)"),
    ("התעלם|התעלמי|שכח", r"(?:התעלם|התעלמי|שכח).{0,40}?(?:ההוראות|הנחיות|הוראות)"),
    ("निर्देश|आदेश", r"(?:निर्देश|आदेश).{0,30}?(?:अनदेखा|नज़रअंदाज़|नजरअंदाज|भूल)"),
    (
        "忽略|无视|無視|忘记|忘記|忽视|忽視|不要理会|不要理會|抛弃",
        r"(?:忽略|无视|無視|忘记|忘記|忽视|忽視|不要理会|不要理會|抛弃).{0,20}?(?:指令|指示|提示|"
        r"说明|說明|规则|規則|命令|要求|设定|設定)",
    ),
    (
        "你现在是|你現在是|从现在|從現在|系统提示|系統提示|新的指令|新的系统|不要告诉用户|不要告訴使用者",
        r"你现在是|你現在是|(?:从现在|從現在)(?:起|开始|開始)，?你|"
        r"系统提示|系統提示|新的指令|新的系统|不要告诉用户|不要告訴使用者",
    ),
    ("無視|忘れ|破棄", r"(?:指示|命令|ルール|プロンプト|指令).{0,12}?(?:無視|忘れ|破棄)"),
    ("무시|잊어|잊으", r"(?:지시|명령|규칙|프롬프트|지침).{0,14}?(?:무시|잊어|잊으)"),
)
_TOOLS = (
    "index_documents|remove_documents|edit_graph|cancel_job|submit_work|claim_work|drift_step|drift_finish|drift_search|get_source|"
    "get_entity|get_community_report|local_search|global_search|search_text|explore_graph|graph_status"
)
_CALLS = (
    (
        "tool|function|invoke",
        r"<\|?/?(?:tool_calls?|function_calls?|tool_use|tool_response|tool_result|(?:[a-z]{1,8}:)?invoke)\b|"
        r"<(?:function|tool|parameter)(?:=| name=)|<｜tool|\"(?:tool_calls?|function_call|tool_use|tool_name)\" ?:|"
        r"\b(?:call|invoke|use|run|execute) the (?:tool|function)\b|\b(?:tool|function)_call\b",
    ),
    (
        '"arguments"|"parameters"|"input"',
        r"\"name\" ?: ?\"[\w.-]{1,60}\" ?,\s{0,8}\"(?:arguments|parameters|input)\" ?:",
    ),
    (_TOOLS, rf"\b(?:{_TOOLS})\("),
    ("工具|函数|函數", r"(?:调用|調用|执行|執行)(?:工具|函数|函數)"),
)
_KEYS = (
    "api key|api-key|api_key|apikey|access key|access_key|access token|access_token|password|passphrase|credential|secret key|"
    "secrets|private key|environment variable|.env|ssh key|system prompt|session cookie"
)
_SECRETS = (
    (
        _KEYS,
        r"\b(?:send|reveal|print|give|tell|show|e-?mail|mail|upload|post|output|share|exfiltrate|leak|paste|forward|include|"
        rf"submit|transmit|repeat)\b.{{0,60}}?(?:{_KEYS.replace('.', chr(92) + '.')})",
    ),
    (
        "密钥|密鑰|金鑰|密码|密碼|口令|令牌|凭证|憑證|凭据|系统提示|系統提示|环境变量|環境變數",
        r"(?:发送|發送|告诉|告訴|输出|輸出|泄露|洩露|显示|顯示|提供|上传|上傳|发给|發給|打印|"
        r"透露|交出).{0,30}?(?:密钥|密鑰|金鑰|密码|密碼|口令|令牌|凭证|憑證|凭据|系统提示|系統提示|环境变量|環境變數)|"
        r"(?:密钥|密鑰|金鑰|密码|密碼|口令|令牌|凭证|憑證|环境变量).{0,16}?(?:发送|發送|发给|發給|告诉|告訴|上传|上傳|输出|輸出|泄露)",
    ),
    (
        "passwort|schlüssel|zugangsdaten|kennwort",
        r"\b(?:send|nenn|verrat|gib|gebt|schick|zeig|teil)\w{0,4}\b.{0,60}?(?:passwort|schlüssel|"
        r"zugangsdaten|kennwort)",
    ),
    (
        "de passe|clé|identifiants|jeton",
        r"\b(?:envo[iy]|révél|affich|donn|montr|transmet)\w{0,6}\b.{0,60}?(?:mots? de passe|clés? (?:api|secrète)|"
        r"identifiants|jetons?)",
    ),
    (
        "contraseña|clave|credencia|senha|chave",
        r"\b(?:env[ií]|revel|muestr|mostr|dime|comparte|diga|envie|compartilh)\w{0,6}\b.{0,60}?"
        r"(?:contraseñas?|claves? (?:api|secreta)|credenciales|senhas?|chaves? (?:api|secreta)|credenciais)",
    ),
    (
        "парол|ключ|токен|учётн|учетн|секрет",
        r"(?:отправь|пришли|покажи|раскрой|сообщи|выведи|назови)\w{0,3}.{0,60}?(?:парол|ключ|токен|учётн|"
        r"учетн|секрет)",
    ),
    (
        "パスワード|apiキー|秘密鍵|認証情報|トークン",
        r"(?:パスワード|APIキー|秘密鍵|認証情報|トークン).{0,16}?(?:送|教え|表示|出力|開示)",
    ),
    (
        "비밀번호|api 키|암호|토큰|자격 증명",
        r"(?:비밀번호|API 키|암호|토큰|자격 증명).{0,16}?(?:보내|알려|출력|공개|보여)",
    ),
    (
        "كلمة المرور|كلمات المرور|مفتاح|الرمز السري|بيانات الاعتماد",
        r"(?:أرسل|اكشف|أظهر|اطبع).{0,60}?(?:كلمة المرور|كلمات المرور|مفتاح|"
        r"الرمز السري|بيانات الاعتماد)",
    ),
)
KINDS = {"instructions": _INSTRUCTIONS, "tool call": _CALLS, "asks for secrets": _SECRETS}
_PATTERNS = [
    (
        kind,
        words if isinstance(words, tuple) else tuple(words.split("|")),
        re.compile(one, re.IGNORECASE | re.MULTILINE | re.DOTALL),
    )
    for kind, some in KINDS.items()
    for words, one in some
]
MOST = 8  # places that one pattern is looked for in


@lru_cache(maxsize=64)
def suspicions(text: str) -> tuple[tuple[int, str], ...]:
    """(offset, kind) of what reads as meant for a model, in order; of each pattern the first eight places."""
    lower = text.lower()
    letters = set(lower)
    found: list[tuple[int, str]] = []
    for kind, words, pattern in _PATTERNS:
        if not any(word[0] in letters and word in lower for word in words):
            continue
        for number, match in enumerate(pattern.finditer(text)):
            if number == MOST:
                break
            found.append((match.start(), kind))
    return tuple(sorted(found))


# ---- credentials --------------------------------------------------------------------------------------

_KEY = re.compile(
    r"(?<![A-Za-z0-9_-])(?:"
    r"(?:AKIA|ASIA|AROA|AIDA)[A-Z0-9]{16}(?![A-Za-z0-9])"  # Amazon
    r"|gh[pousr]_[A-Za-z0-9]{36,250}|github_pat_[A-Za-z0-9_]{22,250}|glpat-[A-Za-z0-9_-]{20,60}"
    r"|sk-(?:(?:proj|ant|svcacct|admin|or)-[A-Za-z0-9_-]{16,250}|[A-Za-z0-9]{20,250})"  # OpenAI, Anthropic
    r"|xox[abeprs]-[A-Za-z0-9-]{10,250}|xapp-[A-Za-z0-9-]{10,250}"  # Slack
    r"|AIza[A-Za-z0-9_-]{35}(?![A-Za-z0-9_-])|ya29\.[A-Za-z0-9_-]{20,250}"  # Google
    r"|[srp]k_(?:live|test)_[A-Za-z0-9]{16,250}|whsec_[A-Za-z0-9]{24,100}"  # Stripe
    r"|npm_[A-Za-z0-9]{36}|pypi-[A-Za-z0-9_-]{40,250}|hf_[A-Za-z0-9]{30,60}|dop_v1_[a-f0-9]{64}|SG\.[A-Za-z0-9_-]{16,40}\.[A-Za-z0-9_-]{30,60}"
    r"|eyJ[A-Za-z0-9_-]{10,2000}\.eyJ[A-Za-z0-9_-]{10,4000}(?:\.[A-Za-z0-9_-]{0,2000})?"  # JSON web tokens
    r")"
)
_NAMED = re.compile(  # a secret that only its name tells: aws_secret_access_key = ...
    r"(?:aws_?secret_?access_?key|secretaccesskey|client_?secret)['\"]?\s{0,4}[:=]\s{0,4}['\"]?([A-Za-z0-9/+_~.-]{30,100})",
    re.IGNORECASE,
)
_BLOCK = re.compile(r"-----BEGIN (?:[A-Z0-9]{1,12} ){0,3}PRIVATE KEY(?: BLOCK)?-----")
_BLOCK_END = re.compile(r"-----END (?:[A-Z0-9]{1,12} ){0,3}PRIVATE KEY(?: BLOCK)?-----")
_LINES = re.compile(r"^(?:[A-Za-z0-9+/]{64}\n){3,}[A-Za-z0-9+/=]{0,64}", re.MULTILINE)  # the middle of such a block
_HINTS = ("AKIA", "ASIA", "AROA", "AIDA", "ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_", "glpat-", "sk-", "xox", "xapp-", "AIza", "ya29.", "k_live_", "k_test_",
          "whsec_", "npm_", "pypi-", "hf_", "dop_v1_", "SG.", "eyJ")  # fmt: skip
_LONGEST_BLOCK = 20_000


def masked(text: str) -> str:
    """The text with credentials as stars behind their first four characters: as long as before."""
    parts, at = [], 0
    for start, end in spans(text):
        parts += (text[at:start], re.sub(r"[^\r\n]", "*", text[start:end]))
        at = end
    return "".join((*parts, text[at:])) if parts else text


def credentials(text: str) -> list[int]:
    """Where credentials begin."""
    return [start for start, _ in spans(text)]


@lru_cache(maxsize=64)
def spans(text: str) -> tuple[tuple[int, int], ...]:
    """What is to be masked of each credential, in order, none within another."""
    found: list[tuple[int, int]] = []
    if any(hint in text for hint in _HINTS):
        found += [(match.start() + 4, match.end()) for match in _KEY.finditer(text)]
    if "ecret" in text or "ECRET" in text:
        found += [(match.start(1) + 4, match.end()) for match in _NAMED.finditer(text) if _no_code(match[1])]
    if "-----BEGIN " in text:
        found += _blocks(text)
    if any(len(line) == 64 for line in text.split("\n")):
        found += [match.span() for match in _LINES.finditer(text) if _mixed(match[0])]
    apart: list[tuple[int, int]] = []
    for start, end in sorted(found):
        if not apart or start >= apart[-1][1]:
            apart.append((start, end))
        elif end > apart[-1][1]:
            apart[-1] = (apart[-1][0], end)
    return tuple(apart)


def _no_code(value: str) -> bool:
    """A key has digits; `settings.oauth.client_secret` only names one."""
    return any(map(str.isdigit, value)) and not re.search(r"[a-z]\.[a-z]", value)


def _mixed(lines: str) -> bool:
    """Lines of base64, and not sums in hexadecimal or letters of a gene."""
    return any(map(str.islower, lines)) and any(map(str.isupper, lines)) and any(map(str.isdigit, lines))


def _blocks(text: str) -> list[tuple[int, int]]:
    """Private keys between their first and their last line."""
    found, at = [], 0
    while begin := _BLOCK.search(text, at):
        end = _BLOCK_END.search(text, begin.end(), begin.end() + _LONGEST_BLOCK)
        at = end.start() if end else min(len(text), begin.end() + _LONGEST_BLOCK)
        found.append((begin.end(), at))
    return found
