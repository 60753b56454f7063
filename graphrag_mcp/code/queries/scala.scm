(class_definition name: (identifier) @name) @def.class
(object_definition name: (identifier) @name) @def.class
(trait_definition name: (identifier) @name) @def.interface
(enum_definition name: (identifier) @name) @def.class
(type_definition name: (type_identifier) @name) @def.type
(function_definition name: (identifier) @name) @def.function
(function_declaration name: (identifier) @name) @def.function
(extends_clause (type_identifier) @base)
(extends_clause (generic_type type: (type_identifier) @base))
(extends_clause (compound_type (type_identifier) @base))
(import_declaration) @import
[(comment) (block_comment)] @comment
