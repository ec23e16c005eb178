"use strict";(()=>{var t=()=>{let e=settings.into&&document.querySelector(settings.into)||element.querySelector(".td-line-text");e.textContent=props.value||""};t();watch("value",t);})();
