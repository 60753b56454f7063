(function_declaration name: (identifier) @name) @def.function
(method_declaration receiver: (parameter_list (parameter_declaration type: [(type_identifier) @owner (pointer_type (type_identifier) @owner) (generic_type type: (type_identifier) @owner) (pointer_type (generic_type type: (type_identifier) @owner))])) name: (field_identifier) @name) @def.function
(type_spec name: (type_identifier) @name type: (struct_type)) @def.class
(type_spec name: (type_identifier) @name type: (interface_type)) @def.interface
(type_spec name: (type_identifier) @name type: [(type_identifier) (function_type) (map_type) (slice_type) (qualified_type) (pointer_type) (array_type) (channel_type) (generic_type)]) @def.type
(field_declaration !name type: [(type_identifier) (qualified_type) (generic_type)] @base)
(interface_type (type_elem . [(type_identifier) (qualified_type) (generic_type)] @base .))
(call_expression function: (identifier) @callee) @call
(call_expression function: (selector_expression operand: (_) @receiver field: (field_identifier) @callee)) @call
(composite_literal type: [(type_identifier) @callee (generic_type type: (type_identifier) @callee) (qualified_type package: (_) @receiver name: (type_identifier) @callee)]) @call
(import_spec) @import
(package_clause "package" @export (package_identifier) @of)
(method_elem name: (field_identifier) @name) @def.function
(type_conversion_expression type: (generic_type type: (type_identifier) @callee)) @call
(type_conversion_expression type: (generic_type type: (qualified_type package: (_) @receiver name: (type_identifier) @callee))) @call
(call_expression function: (index_expression operand: (identifier) @callee)) @call
(call_expression function: (index_expression operand: (selector_expression operand: (_) @receiver field: (field_identifier) @callee))) @call
(type_parameter_declaration name: (identifier) @var type: (_) @type)
(parameter_declaration name: (identifier) @var type: (_) @type)
(variadic_parameter_declaration name: (identifier) @var type: (_) @type)
(method_declaration receiver: (parameter_list (parameter_declaration type: [(generic_type type_arguments: (type_arguments (type_elem (type_identifier) @var))) (pointer_type (generic_type type_arguments: (type_arguments (type_elem (type_identifier) @var))))])))
(field_declaration name: (field_identifier) @field type: (_) @type)
(short_var_declaration left: (expression_list (identifier) @var))
(short_var_declaration left: (expression_list . (identifier) @var) right: (expression_list . (_) @type))
(range_clause left: (expression_list (identifier) @var))
(receive_statement left: (expression_list (identifier) @var))
(receive_statement left: (expression_list . (identifier) @var) right: (_) @type)
(type_switch_statement alias: (expression_list (identifier) @var))
(type_switch_statement alias: (expression_list (identifier) @var) (type_case . type: (_) @type . [(statement_list) (comment)]) @within)
(var_spec name: (identifier) @var)
(var_spec name: (identifier) @var type: (_) @type)
(var_spec . name: (identifier) @var !type value: (expression_list . (_) @type))
(const_spec name: (identifier) @var)
(comment) @comment
