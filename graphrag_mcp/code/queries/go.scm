(function_declaration name: (identifier) @name) @def.function
(method_declaration receiver: (parameter_list (parameter_declaration type: [(type_identifier) @owner (pointer_type (type_identifier) @owner) (generic_type type: (type_identifier) @owner)])) name: (field_identifier) @name) @def.function
(type_spec name: (type_identifier) @name type: (struct_type)) @def.class
(type_spec name: (type_identifier) @name type: (interface_type)) @def.interface
(type_spec name: (type_identifier) @name type: [(type_identifier) (function_type) (map_type) (slice_type) (qualified_type) (pointer_type)]) @def.type
(field_declaration !name type: (type_identifier) @base)
(field_declaration !name type: (pointer_type (type_identifier) @base))
(type_elem (type_identifier) @base)
(call_expression function: (identifier) @callee) @call
(call_expression function: (selector_expression operand: (_) @receiver field: (field_identifier) @callee)) @call
(composite_literal type: (type_identifier) @callee) @call
(import_spec) @import
(parameter_declaration name: (identifier) @var type: [(type_identifier) @type (pointer_type (type_identifier) @type) (qualified_type) @type (pointer_type (qualified_type) @type)])
(field_declaration name: (field_identifier) @var type: [(type_identifier) @type (pointer_type (type_identifier) @type)])
(short_var_declaration left: (expression_list . (identifier) @var) right: (expression_list . (composite_literal type: (type_identifier) @type)))
(short_var_declaration left: (expression_list . (identifier) @var) right: (expression_list . (unary_expression operand: (composite_literal type: (type_identifier) @type))))
(var_spec name: (identifier) @var type: [(type_identifier) @type (pointer_type (type_identifier) @type)])
(comment) @comment
