(class_declaration name: (type_identifier) @name) @def.class
(abstract_class_declaration name: (type_identifier) @name) @def.class
(interface_declaration name: (type_identifier) @name) @def.interface
(class name: (type_identifier) @var)
(type_alias_declaration name: (type_identifier) @name) @def.type
(internal_module name: (_) @name) @scope
(module name: [(identifier) (nested_identifier)] @name) @scope
(enum_declaration name: (identifier) @name) @def.type
(method_signature name: (property_identifier) @name) @def.function
(abstract_method_signature name: (property_identifier) @name) @def.function
(public_field_definition name: [(property_identifier) (private_property_identifier)] @name value: [(arrow_function) (function_expression)]) @def.function
(extends_clause value: [(identifier) (member_expression)] @base)
(implements_clause (_) @base)
(extends_type_clause (_) @base)
(call_expression function: (await_expression [(identifier) @callee (member_expression object: (_) @receiver property: (_) @callee)])) @call
(type_parameter name: (type_identifier) @var)
(type_parameter name: (type_identifier) @var constraint: (constraint (_) @type))
(required_parameter pattern: (identifier) @var)
(optional_parameter pattern: (identifier) @var)
(required_parameter pattern: (identifier) @var type: (type_annotation (_) @type))
(optional_parameter pattern: (identifier) @var type: (type_annotation (_) @type))
(required_parameter [(accessibility_modifier) "readonly"] pattern: (identifier) @field type: (type_annotation (_) @type))
(optional_parameter [(accessibility_modifier) "readonly"] pattern: (identifier) @field type: (type_annotation (_) @type))
(required_parameter pattern: (rest_pattern (identifier) @var) type: (type_annotation (_) @type))
(property_signature name: (property_identifier) @field type: (type_annotation (_) @type))
(variable_declarator name: (identifier) @var type: (type_annotation (_) @type))
(public_field_definition name: (_) @field type: (type_annotation (_) @type))
(public_field_definition name: (_) @field value: (_) @type)
