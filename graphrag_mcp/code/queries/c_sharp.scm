(class_declaration name: (identifier) @name) @def.class
(record_declaration name: (identifier) @name) @def.class
(struct_declaration name: (identifier) @name) @def.class
(interface_declaration name: (identifier) @name) @def.interface
(enum_declaration name: (identifier) @name) @def.type
(method_declaration name: (identifier) @name) @def.function
(constructor_declaration name: (identifier) @name) @def.function
(property_declaration name: (identifier) @name) @def.constant
(base_list (identifier) @base)
(base_list (qualified_name name: (identifier) @base))
(base_list (generic_name (identifier) @base))
(using_directive) @import
(comment) @comment
