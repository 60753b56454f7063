(class_declaration name: (type_identifier) @name) @def.class
(abstract_class_declaration name: (type_identifier) @name) @def.class
(interface_declaration name: (type_identifier) @name) @def.interface
(type_alias_declaration name: (type_identifier) @name) @def.type
(enum_declaration name: (identifier) @name) @def.type
(function_declaration name: (identifier) @name) @def.function
(generator_function_declaration name: (identifier) @name) @def.function
(method_definition name: (property_identifier) @name) @def.function
(method_signature name: (property_identifier) @name) @def.function
(abstract_method_signature name: (property_identifier) @name) @def.function
(public_field_definition name: (property_identifier) @name value: [(arrow_function) (function_expression)]) @def.function
(variable_declarator name: (identifier) @name value: [(arrow_function) (function_expression)]) @def.function
(extends_clause value: (identifier) @base)
(extends_clause value: (member_expression property: (property_identifier) @base))
(implements_clause (type_identifier) @base)
(implements_clause (generic_type name: (type_identifier) @base))
(extends_type_clause (type_identifier) @base)
(call_expression function: (identifier) @callee) @call
(call_expression function: (member_expression object: (_) @receiver property: (property_identifier) @callee)) @call
(new_expression constructor: (identifier) @callee) @call
(import_statement) @import
(export_statement source: (string)) @import
(variable_declarator name: (identifier) @var type: (type_annotation (type_identifier) @type))
(variable_declarator name: (identifier) @var value: (new_expression constructor: (identifier) @type))
(required_parameter pattern: (identifier) @var type: (type_annotation (type_identifier) @type))
(public_field_definition name: (property_identifier) @var type: (type_annotation (type_identifier) @type))
(public_field_definition name: (property_identifier) @var value: (new_expression constructor: (identifier) @type))
(comment) @comment
