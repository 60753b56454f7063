(function_definition declarator: (function_declarator declarator: [(identifier) (field_identifier) (destructor_name) (operator_name)] @name)) @def.function
(function_definition declarator: (function_declarator declarator: (qualified_identifier) @name)) @def.function
(function_definition declarator: (pointer_declarator declarator: (function_declarator declarator: (_) @name))) @def.function
(function_definition declarator: (reference_declarator (function_declarator declarator: (_) @name))) @def.function
(field_declaration declarator: (function_declarator declarator: (field_identifier) @name)) @def.function
(class_specifier name: (type_identifier) @name body: (_)) @def.class
(struct_specifier name: (type_identifier) @name body: (_)) @def.class
(enum_specifier name: (type_identifier) @name body: (_)) @def.type
(namespace_definition name: (namespace_identifier) @name) @scope
(base_class_clause (type_identifier) @base)
(base_class_clause (qualified_identifier name: (type_identifier) @base))
(base_class_clause (template_type name: (type_identifier) @base))
(preproc_include) @import
(comment) @comment
