"use strict";(()=>{var e=()=>{let{run:t,text:n}=props.value?JSON.parse(props.value):{run:"",text:""},o=document.querySelector("#"+settings.panel+" [data-run]");element.querySelector(
".td-line-text").textContent=t&&o?.dataset.run===t?n:""};e();watch("value",e);window.addEventListener("tokendyno-run",e);})();
