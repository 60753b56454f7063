(class_declaration declaration_kind: ["class" "struct" "enum" "actor"] name: (type_identifier) @name) @def.class
(class_declaration declaration_kind: "extension" name: (user_type (type_identifier) @name)) @scope
(protocol_declaration name: (type_identifier) @name) @def.interface
(typealias_declaration name: (type_identifier) @name) @def.type
(function_declaration name: (simple_identifier) @name) @def.function
(protocol_function_declaration name: (simple_identifier) @name) @def.function
(inheritance_specifier inherits_from: (user_type) @base)
(import_declaration) @import
[(comment) (multiline_comment)] @comment
