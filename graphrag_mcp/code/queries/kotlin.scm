(class_declaration name: (identifier) @name) @def.class
(object_declaration name: (identifier) @name) @def.class
(function_declaration name: (identifier) @name) @def.function
(delegation_specifier (user_type) @base)
(delegation_specifier (constructor_invocation (user_type) @base))
(import) @import
[(line_comment) (block_comment)] @comment
