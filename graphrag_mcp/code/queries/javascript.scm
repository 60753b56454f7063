(class_declaration name: (identifier) @name) @def.class
(field_definition property: [(property_identifier) (private_property_identifier)] @name value: [(arrow_function) (function_expression)]) @def.function
(variable_declarator name: (identifier) @name value: (class)) @def.class
(class_heritage (identifier) @base)
(class_heritage (member_expression property: (property_identifier) @base))
(call_expression function: (super) @callee) @call
(variable_declarator value: (call_expression function: (identifier) @_require (#eq? @_require "require"))) @import
(formal_parameters (identifier) @var)
(field_definition property: (_) @field value: (_) @type)
(assignment_expression left: (member_expression object: (identifier) @_module property: (property_identifier) @_exports) right: (identifier) @of (#eq? @_module "module") (#eq? @_exports "exports"))
