(class_definition name: (identifier) @name) @def.class
(function_definition name: (identifier) @name) @def.function
(class_definition superclasses: (argument_list (identifier) @base))
(class_definition superclasses: (argument_list (attribute attribute: (identifier) @base)))
(call function: (identifier) @callee) @call
(call function: (attribute object: (_) @receiver attribute: (identifier) @callee)) @call
[(import_statement) (import_from_statement)] @import
(assignment left: (identifier) @var right: (call function: (identifier) @type))
(comment) @comment
