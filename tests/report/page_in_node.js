// A page without a browser: elements with as much of the DOM as page.js asks for. Every element fills a square of 1000
// pixels, so that a pointer at (250, 500) is at a quarter and a half of any plot.
"use strict";
const { readFileSync } = require("node:fs");
const { runInNewContext } = require("node:vm");

const SIDE = 1000;

class Element {
  constructor(name, attributes = {}, children = []) {
    Object.assign(this, { name, attributes, style: {}, heard: {}, children: [] });
    this.append(...children);
  }
  append(...added) { added.forEach((each) => { each.parentElement = this; }); this.children.push(...added); }
  prepend(first) { first.parentElement = this; this.children.unshift(first); }
  appendChild(child) { this.append(child); return child; }
  replaceChildren(...others) { this.children = []; this.append(...others); }
  get textContent() { return this.name === "#text" ? this.attributes.text : this.children.map((each) => each.textContent).join(""); }
  set textContent(text) { this.replaceChildren(...(text ? [new Element("#text", { text })] : [])); }
  get className() { return this.attributes.class ?? ""; }
  set className(name) { this.attributes.class = name; }
  getAttribute(key) { return this.attributes[key] ?? null; }
  setAttribute(key, value) { this.attributes[key] = String(value); }
  get dataset() {
    const data = Object.entries(this.attributes).filter(([key]) => key.startsWith("data-"));
    return Object.fromEntries(data.map(([key, value]) => [key.slice(5), value]));
  }
  get classList() {
    const names = new Set(this.className.split(" ").filter(Boolean));
    return {
      contains: (name) => names.has(name),
      toggle: (name, on) => { if (on) names.add(name); else names.delete(name); this.className = [...names].join(" "); },
    };
  }
  getBoundingClientRect() { return { left: 0, top: 0, width: SIDE, height: SIDE }; }
  addEventListener(kind, listener) { (this.heard[kind] ??= []).push(listener); }
  contains(other) { return other === this || Boolean(other.parentElement && this.contains(other.parentElement)); }
  matches(selector) {
    const [, name, style, attribute, , value] = selector.match(/^(\w*)(?:\.(\w+))?(?:\[([\w-]+)(="(.*)")?\])?$/);
    return (!name || this.name === name) && (!style || this.classList.contains(style)) &&
      (!attribute || (value === undefined ? attribute in this.attributes : this.attributes[attribute] === value));
  }
  querySelectorAll(selector) {
    return this.children.flatMap((each) => [...(each.matches(selector) ? [each] : []), ...each.querySelectorAll(selector)]);
  }
  querySelector(selector) { return this.querySelectorAll(selector)[0] ?? null; }
  closest(selector) { return this.matches(selector) ? this : this.parentElement?.closest(selector) ?? null; }
}

function made(node) {
  if (typeof node === "string") return new Element("#text", { text: node });
  const [name, attributes, children] = node;
  return new Element(name, attributes, children.map(made));
}

const [script, input] = process.argv.slice(2).map((file) => readFileSync(file, "utf8"));
const { page, steps } = JSON.parse(input);
const document = made(page);
document.body = document.querySelector("body");
document.createElement = (name) => new Element(name);
runInNewContext(script, { document, innerWidth: 3 * SIDE, addEventListener() {} });

const tip = document.body.children.at(-1);
const told = steps.map(({ figure, hover, click }) => {
  if (click !== undefined) {
    const key = document.querySelector(`[data-token="${click}"]`);
    key.closest(".legend").heard.click.forEach((listener) => listener({ target: key }));
  }
  const drawn = document.querySelectorAll("figure[data-chart]")[figure ?? 0];
  if (hover) {
    const event = { clientX: SIDE * hover[0], clientY: SIDE * hover[1] };
    drawn.querySelector(".plot").heard.pointermove.forEach((listener) => listener(event));
  }
  const [heading, ...rows] = tip.children;
  return {
    heading: heading?.textContent,
    rows: rows.map((row) => row.children.map((each) => each.textContent)),
    shown: drawn.querySelectorAll(".series").map((line) => !line.classList.contains("off")),
  };
});
process.stdout.write(JSON.stringify(told));
