"use strict";(()=>{var e=0;document.addEventListener(settings.change,()=>{clearTimeout(e),e=setTimeout(()=>trigger("settled"),40)});})();
