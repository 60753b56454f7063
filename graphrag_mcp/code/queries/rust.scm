(struct_item name: (type_identifier) @name) @def.class
(enum_item name: (type_identifier) @name) @def.class
(union_item name: (type_identifier) @name) @def.class
(trait_item name: (type_identifier) @name) @def.interface
(type_item name: (type_identifier) @name) @def.type
(function_item name: (identifier) @name) @def.function
(function_signature_item name: (identifier) @name) @def.function
(macro_definition name: (identifier) @name) @def.function
(mod_item name: (identifier) @name body: (_)) @scope
(impl_item type: (type_identifier) @name) @scope
(impl_item type: (generic_type type: (type_identifier) @name)) @scope
(impl_item trait: (type_identifier) @base)
(impl_item trait: (generic_type type: (type_identifier) @base))
(impl_item trait: (scoped_type_identifier name: (type_identifier) @base))
(trait_item bounds: (trait_bounds (type_identifier) @base))
(call_expression function: (identifier) @callee) @call
(call_expression function: (scoped_identifier path: (_) @receiver name: (identifier) @callee)) @call
(call_expression function: (field_expression value: (_) @receiver field: (field_identifier) @callee)) @call
(call_expression function: (generic_function function: (identifier) @callee)) @call
(macro_invocation macro: (identifier) @callee) @call
(struct_expression name: (type_identifier) @callee) @call
(use_declaration) @import
(parameter pattern: (identifier) @var type: [(type_identifier) @type (reference_type type: (type_identifier) @type)])
(let_declaration pattern: (identifier) @var type: (type_identifier) @type)
(let_declaration pattern: (identifier) @var value: (call_expression function: (scoped_identifier path: (identifier) @type name: (identifier) @_new (#match? @_new "^(new|default|from)"))))
(let_declaration pattern: (identifier) @var value: (struct_expression name: (type_identifier) @type))
(field_declaration name: (field_identifier) @var type: (type_identifier) @type)
[(line_comment) (block_comment)] @comment
