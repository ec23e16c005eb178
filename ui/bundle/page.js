"use strict";(()=>{var i='a[href], button, input, select, textarea, summary, [tabindex="0"]',d=e=>e.isConnected&&!e.disabled&&!e.closest("[inert], [hidden]")&&e.checkVisibility({visibilityProperty:!0}),
r=null,c=[],p=0,E=e=>{e.focus({preventScroll:!0}),e.dispatchEvent(new KeyboardEvent("keydown",{key:"Escape",bubbles:!0}))},w=()=>{for(let e of c){if(!e.isConnected||
e===document.body)continue;let t=[...e.querySelectorAll(i)].filter(d);if(t.length)return t[Math.min(p,t.length-1)]}return null},f=()=>r?(document.activeElement===
r?r.disabled:document.activeElement===document.body&&!d(r))&&!document.querySelector("dialog[open]"):!1,u=0,k=()=>{u||!f()||(u=setTimeout(()=>{u=0,f()&&w()?.focus(
{preventScroll:!0})},60))};document.addEventListener("focusin",e=>{r=e.target,c=[];for(let n=r.parentElement;n;n=n.parentElement)c.push(n);let t=c.find(n=>n.querySelectorAll(
i).length>1);t&&(c=c.slice(c.indexOf(t))),p=t?[...t.querySelectorAll(i)].filter(d).indexOf(r):0});document.addEventListener("focusout",e=>{let t=e.target;t.getAttribute?.(
"role")!=="combobox"||!e.relatedTarget||setTimeout(()=>{t.getAttribute("aria-expanded")==="true"&&document.activeElement!==t&&t.dispatchEvent(new KeyboardEvent(
"keydown",{key:"Escape",bubbles:!0}))})});document.addEventListener("pointerdown",e=>{e.target.closest(i)||(r=null)});document.addEventListener("keydown",e=>{let t=e.
target;!["Enter","Escape"].includes(e.key)||t.getAttribute?.("role")!=="combobox"||setTimeout(()=>{document.activeElement===document.body&&d(t)&&E(t)})},!0);var x=document.
getElementsByClassName("cm-scroller"),v=()=>{for(let e of x)e.tabIndex<0&&Object.assign(e,{tabIndex:0,role:"group",ariaLabel:"Python code"})};new MutationObserver(
()=>{k(),v()}).observe(document.body,{subtree:!0,childList:!0,attributes:!0,attributeFilter:["disabled","hidden","class","open","inert"]});document.addEventListener("click",e=>{let n=e.target.closest?.(".td-code a[download]"),s=n?.closest(".td-code").querySelector('[data-testid="block-label"]')?.textContent.
match(/\S+\.py\s*$/);s&&(n.download=s[0].trim())},!0);document.addEventListener("click",async e=>{let t=e.target.closest?.(".td-copy-as"),n=t?.closest("[data-run]");if(!n)return;let{as:s}=t.dataset,m=s==="png"?"ima\
ge/png":"text/plain",b="files/"+encodeURIComponent(n.dataset.run)+"."+s,a=o=>{n.querySelector(".td-copied-as").textContent=o},l="",h=async()=>{let o=await fetch(
b);if(!o.ok)throw new Error(l=(await o.json()).detail);return new Blob([await o.arrayBuffer()],{type:m})};try{await navigator.clipboard.write([new ClipboardItem(
{[m]:h()})]),a(t.textContent+" copied")}catch{if(l){a(l);return}let o=document.createElement("a");o.href=b,o.download="",o.click(),a(t.textContent+" saved as a \
file, since this page may not copy")}setTimeout(()=>a(""),5e3)});var y=e=>{let t=e.composedPath()[0],n=!e.ctrlKey&&!e.metaKey&&!e.altKey&&!e.isComposing&&!e.defaultPrevented,s=t instanceof HTMLInputElement?!["range","checkbox",
"radio","button"].includes(t.type):!1;return n&&!s&&!t.closest?.('textarea, select, [contenteditable="true"], [role="combobox"], [role="listbox"]')};var g=e=>[...document.querySelectorAll(e)].find(t=>t.checkVisibility()&&!t.disabled);document.addEventListener("keydown",e=>{if(!["/","Escape"].includes(e.key)||
!y(e)||document.querySelector("dialog[open]"))return;let t=e.key==="/"?g('#verdicts-a [data-press="add"]'):g("#stop, #batch-stop");t&&(e.preventDefault(),t.click())});})();
