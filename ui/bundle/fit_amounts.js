"use strict";(()=>{function c(e){let t=[];for(let n=1;n<e;n*=2)t.push(n,...n>1&&n*1.5<e?[n*1.5]:[]);return[...t.filter(n=>n<e),e]}function m(e,t){let n=o=>Math.abs(Math.log(o/Math.
max(1,t)));return e.reduce((o,r,a)=>n(r)<n(e[o])?a:o,0)}var S=150,h=500,s={};for(let e of element.querySelectorAll(".td-amount")){let[t,n]=e.querySelectorAll("input");s[e.dataset.name]={box:e,range:t,number:n,note:e.
querySelector("small"),stops:[1]}}var i=()=>JSON.parse(props.value),b=0,l=props.value,u=(e,t,n)=>{e.range.max=e.stops.length-1,e.range.value=m(e.stops,t),e.range.
setAttribute("aria-valuetext",Number(t).toLocaleString("en-US")+" "+n)},d=(e,t,n)=>{let o=JSON.stringify({...i(),[e]:t});o!==props.value&&(l=o,props.value=o,clearTimeout(
b),b=setTimeout(()=>trigger("input"),n))},v=e=>e==="context"?"tokens":"sequences";for(let[e,t]of Object.entries(s))t.range.addEventListener("input",()=>{let n=t.
stops[Number(t.range.value)];t.number.value=n,t.range.setAttribute("aria-valuetext",n.toLocaleString("en-US")+" "+v(e)),d(e,n,S)}),t.number.addEventListener("in\
put",()=>{let n=t.number.value===""?"":Number(t.number.value);Number(n)>=1&&u(t,n,v(e)),d(e,n,h)});var f=()=>{let{context:e,batch:t}=i();e!==null&&(s.context.number.
value=e,u(s.context,e,"tokens")),s.batch.number.value=t,u(s.batch,t,"sequences")},x=Number(s.batch.box.dataset.most);s.batch.stops=c(x);s.batch.note.textContent=
"up to "+x.toLocaleString("en-US")+" sequences";f();watch("value",()=>{props.value!==l&&(l=props.value,f())});var g=()=>{if(!element.isConnected||!window.tokendynoFit)
return;let{context:e,most:t,label:n,encoder:o}=window.tokendynoFit,r=s.context;r.stops=c(t),r.box.querySelector("legend").textContent=o?"Input":"Context",r.note.
textContent="of "+t.toLocaleString("en-US")+" positions of "+n;let a=i().context,p=a===null?e:a;document.activeElement!==r.number&&(r.number.value=p),u(r,p,"tok\
ens")};g();window.addEventListener("tokendyno-fit",g);})();
