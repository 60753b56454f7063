(class name: (constant) @name) @def.class
(class name: (scope_resolution name: (constant) @name)) @def.class
(module name: (constant) @name) @def.class
(method name: (_) @name) @def.function
(singleton_method name: (_) @name) @def.function
(superclass (constant) @base)
(superclass (scope_resolution name: (constant) @base))
(call method: (identifier) @_include (#match? @_include "^(include|extend|prepend)$") arguments: (argument_list (constant) @base))
(call method: (identifier) @_require (#match? @_require "^require(_relative)?$")) @import
(comment) @comment
