"use strict";(()=>{var i='a[href], button, input, select, textarea, summary, [tabindex="0"]',d=e=>e.isConnected&&!e.disabled&&!e.closest("[inert], [hidden]")&&e.checkVisibility({visibilityProperty:!0}),
r=null,a=[],p=0,g=e=>{e.focus({preventScroll:!0}),e.dispatchEvent(new KeyboardEvent("keydown",{key:"Escape",bubbles:!0}))},E=()=>{for(let e of a){if(!e.isConnected||
e===document.body)continue;let t=[...e.querySelectorAll(i)].filter(d);if(t.length)return t[Math.min(p,t.length-1)]}return null},f=()=>r?(document.activeElement===
r?r.disabled:document.activeElement===document.body&&!d(r))&&!document.querySelector("dialog[open]"):!1,u=0,h=()=>{u||!f()||(u=setTimeout(()=>{u=0,f()&&E()?.focus(
{preventScroll:!0})},60))};document.addEventListener("focusin",e=>{r=e.target,a=[];for(let n=r.parentElement;n;n=n.parentElement)a.push(n);let t=a.find(n=>n.querySelectorAll(
i).length>1);t&&(a=a.slice(a.indexOf(t))),p=t?[...t.querySelectorAll(i)].filter(d).indexOf(r):0});document.addEventListener("focusout",e=>{let t=e.target;t.getAttribute?.(
"role")!=="combobox"||!e.relatedTarget||setTimeout(()=>{t.getAttribute("aria-expanded")==="true"&&document.activeElement!==t&&t.dispatchEvent(new KeyboardEvent(
"keydown",{key:"Escape",bubbles:!0}))})});document.addEventListener("pointerdown",e=>{e.target.closest(i)||(r=null)});document.addEventListener("keydown",e=>{let t=e.
target;!["Enter","Escape"].includes(e.key)||t.getAttribute?.("role")!=="combobox"||setTimeout(()=>{document.activeElement===document.body&&d(t)&&g(t)})},!0);var w=document.
getElementsByClassName("cm-scroller"),v=()=>{for(let e of w)e.tabIndex<0&&Object.assign(e,{tabIndex:0,role:"group",ariaLabel:"Python code"})};new MutationObserver(
()=>{h(),v()}).observe(document.body,{subtree:!0,childList:!0,attributes:!0,attributeFilter:["disabled","hidden","class","open","inert"]});document.addEventListener("click",e=>{let n=e.target.closest?.(".td-code a[download]"),s=n?.closest(".td-code").querySelector('[data-testid="block-label"]')?.textContent.
match(/\S+\.py\s*$/);s&&(n.download=s[0].trim())},!0);document.addEventListener("click",async e=>{let t=e.target.closest?.(".td-copy-as"),n=t?.closest("[data-run]");if(!n)return;let{as:s}=t.dataset,b=s==="png"?"ima\
ge/png":"text/plain",m="files/"+encodeURIComponent(n.dataset.run)+"."+s,c=o=>{n.querySelector(".td-copied-as").textContent=o},l="",y=async()=>{let o=await fetch(
m);if(!o.ok)throw new Error(l=(await o.json()).detail);return new Blob([await o.arrayBuffer()],{type:b})};try{await navigator.clipboard.write([new ClipboardItem(
{[b]:y()})]),c(t.textContent+" copied")}catch{if(l){c(l);return}let o=document.createElement("a");o.href=m,o.download="",o.click(),c(t.textContent+" saved as a \
file, since this page may not copy")}setTimeout(()=>c(""),5e3)});})();
