(function_declaration name: (identifier) @name) @def.function
(generator_function_declaration name: (identifier) @name) @def.function
(method_definition name: [(property_identifier) (private_property_identifier)] @name) @def.function
(variable_declarator name: (identifier) @name value: [(arrow_function) (function_expression)]) @def.function
(variable_declarator name: (identifier) @name value: (call_expression arguments: (arguments . [(arrow_function) (function_expression)])) (#match? @name "^[A-Z]")) @def.function
(variable_declarator name: (identifier) @name value: (class)) @def.class
(assignment_expression left: (identifier) @again right: (_) @type)
(call_expression function: [(identifier) (super)] @callee) @call
(call_expression function: (member_expression object: (_) @receiver property: [(property_identifier) (private_property_identifier)] @callee)) @call
(new_expression constructor: [(identifier) (this)] @callee) @call
(import_statement) @import
(export_statement source: (string)) @import
(new_expression constructor: (member_expression object: (_) @receiver property: (property_identifier) @callee)) @call
(shorthand_property_identifier_pattern) @var
(pair_pattern value: (identifier) @var)
(array_pattern (identifier) @var)
(rest_pattern (identifier) @var)
(assignment_pattern left: (identifier) @var)
(for_in_statement left: (identifier) @var)
(catch_clause parameter: (identifier) @var)
(arrow_function parameter: (identifier) @var)
(variable_declarator value: (object (pair key: (property_identifier) @name value: [(arrow_function) (function_expression)]) @def.function))
(function_expression name: (identifier) @var)
(variable_declarator name: (identifier) @var)
(variable_declarator name: (identifier) @var value: (_) @type)
(assignment_expression left: (member_expression object: (this) property: (property_identifier) @field) right: (_) @type)
(export_statement "default" declaration: (_ name: (_) @of))
(export_statement "default" value: [(identifier) (new_expression)] @of)
(export_statement "default" value: [(arrow_function) (function_expression !name)] @def.function)
(export_statement !source (export_clause (export_specifier name: (identifier) @of alias: [(_) "default"] @export)))
(variable_declarator value: (call_expression function: (identifier) @_require (#eq? @_require "require"))) @import
(assignment_expression left: (member_expression) @_exports right: [(identifier) @of (class name: (_) @of)] (#eq? @_exports "module.exports"))
(assignment_expression left: (member_expression) @name right: (class) (#match? @name "^(module\\.)?exports\\.[\\w$]+$")) @def.class
(assignment_expression left: (member_expression object: (_) @_exports property: (property_identifier) @export) right: (identifier) @of (#match? @_exports "^(module\\.)?exports$"))
(assignment_expression left: (member_expression) @_exports right: [(arrow_function) (function_expression)] @def.function (#eq? @_exports "module.exports"))
(assignment_expression left: (member_expression) @_exports right: (object (pair key: (property_identifier) @name value: [(arrow_function) (function_expression)]) @def.function) (#eq? @_exports "module.exports"))
(assignment_expression left: (member_expression) @name right: [(arrow_function) (function_expression)] (#match? @name "^(module\\.)?exports\\.[\\w$]+$")) @def.function
(assignment_expression left: (member_expression object: (member_expression object: (identifier) @owner property: (property_identifier) @_prototype) property: (property_identifier) @name) right: [(arrow_function) (function_expression)] (#eq? @_prototype "prototype")) @def.function
(program (expression_statement (assignment_expression left: (member_expression object: (identifier) @owner property: (property_identifier) @name) right: [(arrow_function) (function_expression)] (#not-match? @owner "^(exports|module|window|document)$")) @def.function))
(class) @def.class
(comment) @comment
