"use strict";(()=>{async function a(e){let s=Uint8Array.from(atob(e),t=>t.charCodeAt(0));return new Response(new Blob([s]).stream().pipeThrough(new DecompressionStream("gzip"))).text()}
(async()=>{let e=await a(REPORT.reply),s={...REPORT.settings,most:1/0,first:"",replays:!1,links:!1};matchMedia("(prefers-color-scheme: dark)").matches&&document.
body.classList.add("dark"),panel(document.querySelector("#live"),s,{value:REPORT.value},{pull:async()=>e},()=>{},()=>{})})();})();
