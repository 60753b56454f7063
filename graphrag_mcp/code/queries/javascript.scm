(class_declaration name: (identifier) @name) @def.class
(function_declaration name: (identifier) @name) @def.function
(generator_function_declaration name: (identifier) @name) @def.function
(method_definition name: (property_identifier) @name) @def.function
(field_definition property: (property_identifier) @name value: [(arrow_function) (function_expression)]) @def.function
(variable_declarator name: (identifier) @name value: [(arrow_function) (function_expression)]) @def.function
(variable_declarator name: (identifier) @name value: (class)) @def.class
(class_heritage (identifier) @base)
(class_heritage (member_expression property: (property_identifier) @base))
(call_expression function: (identifier) @callee) @call
(call_expression function: (member_expression object: (_) @receiver property: (property_identifier) @callee)) @call
(new_expression constructor: (identifier) @callee) @call
(call_expression function: (super) @callee) @call
(import_statement) @import
(export_statement source: (string)) @import
(variable_declarator value: (call_expression function: (identifier) @_require (#eq? @_require "require"))) @import
(variable_declarator name: (identifier) @var value: (new_expression constructor: (identifier) @type))
(assignment_expression left: (member_expression object: (this) property: (property_identifier) @var) right: (new_expression constructor: (identifier) @type))
(comment) @comment
