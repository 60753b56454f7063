(class_declaration name: (identifier) @name) @def.class
(field_definition property: [(property_identifier) (private_property_identifier)] @name value: [(arrow_function) (function_expression)]) @def.function
(class name: (identifier) @var)
(class_heritage [(identifier) (member_expression)] @base)
(formal_parameters (identifier) @var)
(field_definition property: (_) @field value: (_) @type)
