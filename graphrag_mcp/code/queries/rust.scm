(struct_item name: (type_identifier) @name) @def.class
(enum_item name: (type_identifier) @name) @def.class
(union_item name: (type_identifier) @name) @def.class
(trait_item name: (type_identifier) @name) @def.interface
(type_item name: (type_identifier) @name) @def.type
(function_item name: (identifier) @name) @def.function
(function_signature_item name: (identifier) @name) @def.function
(macro_definition name: (identifier) @name) @def.function
(mod_item name: (identifier) @name) @scope
(impl_item type: (type_identifier) @name) @scope
(impl_item type: (generic_type type: (type_identifier) @name)) @scope
(impl_item type: (scoped_type_identifier name: (type_identifier) @name)) @scope
(impl_item trait: (type_identifier) @base)
(impl_item trait: (generic_type type: (type_identifier) @base))
(impl_item trait: (scoped_type_identifier name: (type_identifier) @base))
(trait_item bounds: (trait_bounds (type_identifier) @base))
(call_expression function: (identifier) @callee) @call
(call_expression function: (scoped_identifier path: (_) @receiver name: (identifier) @callee)) @call
(call_expression function: (field_expression value: (_) @receiver field: (field_identifier) @callee)) @call
(call_expression function: (generic_function function: [(identifier) @callee (scoped_identifier path: (_) @receiver name: (identifier) @callee) (field_expression value: (_) @receiver field: (field_identifier) @callee)])) @call
(macro_invocation macro: (identifier) @callee) @call
(token_tree (identifier) @callee @call . (token_tree))
(struct_expression name: (type_identifier) @callee) @call
[(use_declaration) (extern_crate_declaration)] @import
(type_parameter name: (type_identifier) @var)
(type_parameter name: (type_identifier) @var bounds: (trait_bounds . (_) @type))
(where_predicate left: (type_identifier) @var bounds: (trait_bounds . (_) @type))
(parameter pattern: (identifier) @var type: (_) @type)
(closure_parameters (identifier) @var)
(let_declaration pattern: (identifier) @var)
(block [(const_item name: (identifier) @var) (static_item name: (identifier) @var)])
(let_declaration pattern: (identifier) @var type: (_) @type)
(let_declaration pattern: (identifier) @var !type value: (_) @type)
(let_condition pattern: (identifier) @var)
(tuple_pattern (identifier) @var)
(tuple_struct_pattern type: (_) (identifier) @var)
(slice_pattern (identifier) @var)
(reference_pattern (identifier) @var)
(ref_pattern (identifier) @var)
(mut_pattern (identifier) @var)
(captured_pattern . (identifier) @var)
(field_pattern name: (shorthand_field_identifier) @var)
(field_pattern pattern: (identifier) @var)
(for_expression pattern: (identifier) @var)
(match_pattern . (identifier) @var)
(field_declaration name: (field_identifier) @field type: (_) @type)
[(line_comment) (block_comment)] @comment
