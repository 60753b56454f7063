(class_declaration name: (name) @name) @def.class
(interface_declaration name: (name) @name) @def.interface
(trait_declaration name: (name) @name) @def.interface
(enum_declaration name: (name) @name) @def.class
(function_definition name: (name) @name) @def.function
(method_declaration name: (name) @name) @def.function
(base_clause (name) @base)
(base_clause (qualified_name (name) @base))
(class_interface_clause (name) @base)
(class_interface_clause (qualified_name (name) @base))
(use_declaration (name) @base)
(namespace_use_declaration) @import
(comment) @comment
