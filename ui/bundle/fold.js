"use strict";(()=>{var t=element.querySelector(".td-more"),l=element.querySelector("style"),e=!1,o=()=>{let{arm:r,folded:n}=JSON.parse(props.value),s=n.map(i=>`#axis-${r}-${i}:not\
(:focus-within)`).join(", ");l.textContent=e||!s?"":`${s} { display: none !important; }`,t.textContent=e?"Fewer options ▴":`More options (${n.length}) ▾`,t.
setAttribute("aria-expanded",String(e)),t.hidden=!n.length};t.addEventListener("click",()=>{e=!e,o()});o();watch("value",o);})();
