"use strict";(()=>{var e=(o,t,n,r)=>{let a=document.createElement(t);return n&&(a.className=n),r!==void 0&&(a.textContent=r),o.append(a),a};function l(){let o=element.querySelector(".td-sharding");if(o.replaceChildren(),o.hidden=!props.value,!props.value)return;let t=JSON.parse(props.value);o.setAttribute(
"aria-label",t.heading);let n=e(o,"table");e(n,"caption","td-sharding-heading",t.heading);let r=e(e(n,"thead"),"tr");for(let d of t.columns)e(r,"th","",d).scope=
"col";let a=e(n,"tbody");for(let d of t.rows){let i=e(a,"tr");d.forEach((p,c)=>{let s=e(i,c?"td":"th","",p);c||(s.scope="row"),s.dataset.label=t.columns[c]})}}l();
watch("value",l);})();
