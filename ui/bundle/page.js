"use strict";(()=>{var s='a[href], button, input, select, textarea, summary, [tabindex="0"]',c=e=>e.isConnected&&!e.disabled&&!e.closest("[inert], [hidden]")&&e.checkVisibility({visibilityProperty:!0}),
o=null,r=[],a=0,u=e=>{e.focus({preventScroll:!0}),e.dispatchEvent(new KeyboardEvent("keydown",{key:"Escape",bubbles:!0}))},b=()=>{for(let e of r){if(!e.isConnected||
e===document.body)continue;let t=[...e.querySelectorAll(s)].filter(c);if(t.length)return t[Math.min(a,t.length-1)]}return null},d=()=>o?(document.activeElement===
o?o.disabled:document.activeElement===document.body&&!c(o))&&!document.querySelector("dialog[open]"):!1,i=0,m=()=>{i||!d()||(i=setTimeout(()=>{i=0,d()&&b()?.focus(
{preventScroll:!0})},60))};document.addEventListener("focusin",e=>{o=e.target,r=[];for(let n=o.parentElement;n;n=n.parentElement)r.push(n);let t=r.find(n=>n.querySelectorAll(
s).length>1);t&&(r=r.slice(r.indexOf(t))),a=t?[...t.querySelectorAll(s)].filter(c).indexOf(o):0});document.addEventListener("focusout",e=>{let t=e.target;t.getAttribute?.(
"role")!=="combobox"||!e.relatedTarget||setTimeout(()=>{t.getAttribute("aria-expanded")==="true"&&document.activeElement!==t&&t.dispatchEvent(new KeyboardEvent(
"keydown",{key:"Escape",bubbles:!0}))})});document.addEventListener("pointerdown",e=>{e.target.closest(s)||(o=null)});document.addEventListener("keydown",e=>{let t=e.
target;!["Enter","Escape"].includes(e.key)||t.getAttribute?.("role")!=="combobox"||setTimeout(()=>{document.activeElement===document.body&&c(t)&&u(t)})},!0);var f=document.
getElementsByClassName("cm-scroller"),y=()=>{for(let e of f)e.tabIndex<0&&Object.assign(e,{tabIndex:0,role:"group",ariaLabel:"Python code"})};new MutationObserver(
()=>{m(),y()}).observe(document.body,{subtree:!0,childList:!0,attributes:!0,attributeFilter:["disabled","hidden","class","open","inert"]});document.addEventListener("click",e=>{let n=e.target.closest?.(".td-code a[download]"),l=n?.closest(".td-code").querySelector('[data-testid="block-label"]')?.textContent.
match(/\S+\.py\s*$/);l&&(n.download=l[0].trim())},!0);})();
