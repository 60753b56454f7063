(class_definition name: (identifier) @name) @def.class
(function_definition name: (identifier) @name) @def.function
(class_definition superclasses: (argument_list (identifier) @base))
(class_definition superclasses: (argument_list (attribute attribute: (identifier) @base)))
(call function: (identifier) @callee) @call
(call function: (attribute object: (_) @receiver attribute: (identifier) @callee)) @call
[(import_statement) (import_from_statement)] @import
(assignment left: (identifier) @var)
(assignment left: (identifier) @var right: (_) @type)
(pattern_list (identifier) @var)
(tuple_pattern (identifier) @var)
(import_from_statement name: (dotted_name (identifier) @var))
(import_statement name: (dotted_name . (identifier) @var))
(aliased_import alias: (identifier) @var)
(for_statement left: (identifier) @var)
(for_in_clause left: (identifier) @var)
(as_pattern_target (identifier) @var)
(named_expression name: (identifier) @var)
(parameters (identifier) @var)
(case_pattern (dotted_name . (identifier) @var .))
(lambda_parameters (identifier) @var)
(default_parameter name: (identifier) @var)
(list_splat_pattern (identifier) @var)
(dictionary_splat_pattern (identifier) @var)
(typed_parameter (identifier) @var type: (type (_) @type))
(typed_default_parameter name: (identifier) @var type: (type (_) @type))
(comment) @comment
