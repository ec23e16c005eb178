"use strict";(()=>{var e=0,t=()=>{window.tokendynoChanged?.delete(settings.page)&&(clearTimeout(e),e=setTimeout(()=>trigger("settled"),40))};document.addEventListener("tokendyno-changed",t);t();})();
