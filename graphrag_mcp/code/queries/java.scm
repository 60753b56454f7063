(class_declaration name: (identifier) @name) @def.class
(record_declaration name: (identifier) @name) @def.class
(interface_declaration name: (identifier) @name) @def.interface
(enum_declaration name: (identifier) @name) @def.class
(method_declaration name: (identifier) @name) @def.function
(constructor_declaration name: (identifier) @name) @def.function
(superclass (type_identifier) @base)
(superclass (generic_type (type_identifier) @base))
(super_interfaces (type_list (type_identifier) @base))
(super_interfaces (type_list (generic_type (type_identifier) @base)))
(extends_interfaces (type_list (type_identifier) @base))
(extends_interfaces (type_list (generic_type (type_identifier) @base)))
(method_invocation !object name: (identifier) @callee) @call
(method_invocation object: (_) @receiver name: (identifier) @callee) @call
(object_creation_expression type: (type_identifier) @callee) @call
(import_declaration) @import
(local_variable_declaration type: (type_identifier) @type declarator: (variable_declarator name: (identifier) @var))
(field_declaration type: (type_identifier) @type declarator: (variable_declarator name: (identifier) @var))
(formal_parameter type: (type_identifier) @type name: (identifier) @var)
[(line_comment) (block_comment)] @comment
