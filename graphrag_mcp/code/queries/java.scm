(class_declaration name: (identifier) @name) @def.class
(record_declaration name: (identifier) @name) @def.class
(interface_declaration name: (identifier) @name) @def.interface
(enum_declaration name: (identifier) @name) @def.class
(method_declaration name: (identifier) @name) @def.function
(constructor_declaration name: (identifier) @name) @def.function
(superclass (_) @base)
(super_interfaces (type_list (_) @base))
(extends_interfaces (type_list (_) @base))
(method_invocation !object name: (identifier) @callee) @call
(method_invocation object: (_) @receiver name: (identifier) @callee) @call
(object_creation_expression type: [(type_identifier) @callee (generic_type (type_identifier) @callee)]) @call
(object_creation_expression type: [(scoped_type_identifier . (_) @receiver (type_identifier) @callee .) (generic_type (scoped_type_identifier . (_) @receiver (type_identifier) @callee .))]) @call
(import_declaration) @import
(object_creation_expression type: [(type_identifier) (scoped_type_identifier) (generic_type)] @name @base (class_body)) @def.class
(type_parameter (type_identifier) @var)
(type_parameter (type_identifier) @var (type_bound . (_) @type))
(local_variable_declaration type: (_) @type declarator: (variable_declarator name: (identifier) @var))
(local_variable_declaration type: (type_identifier) @_var declarator: (variable_declarator name: (identifier) @var value: (_) @type) (#eq? @_var "var"))
(enum_constant name: (identifier) @field)
(record_declaration parameters: (formal_parameters (formal_parameter type: (_) @type name: (identifier) @field)))
(explicit_constructor_invocation constructor: [(super) (this)] @callee) @call
(field_declaration type: (_) @type declarator: (variable_declarator name: (identifier) @var @field))
(formal_parameter type: (_) @type name: (identifier) @var)
(spread_parameter (variable_declarator name: (identifier) @var))
(spread_parameter [(type_identifier) (generic_type) (scoped_type_identifier) (array_type)] @type (variable_declarator name: (identifier) @var))
(enhanced_for_statement type: (_) @type name: (identifier) @var)
(catch_formal_parameter (catch_type . (_) @type) name: (identifier) @var)
(resource type: (_) @type name: (identifier) @var)
(lambda_expression parameters: (identifier) @var)
(inferred_parameters (identifier) @var)
(instanceof_expression right: (_) @type name: (identifier) @var)
(type_pattern (_) @type (identifier) @var)
[(line_comment) (block_comment)] @comment
