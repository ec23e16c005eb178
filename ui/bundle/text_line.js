"use strict";(()=>{var e=()=>{element.querySelector(".td-line-text").textContent=props.value||""};e();watch("value",e);})();
