// Opens pages in a real browser and prints, as JSON, what is wrong with them.
// Usage: node browse.mjs BROWSER FOLDER [SCREENSHOTS]; FOLDER holds *.html.
import { readdirSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { chromium } from 'playwright-core'

const [executablePath, folder, shots] = process.argv.slice(2)
const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')
const wide = 1280, narrow = 400
// A4 less the margins of the style sheet, in CSS pixels.
const paper = Math.round((210 - 24) / 25.4 * 96)

const browser = await chromium.launch({
  executablePath,
  args: ['--no-sandbox', '--disable-gpu', '--disable-background-networking', '--disable-component-update', '--disable-sync'],
})

// sideways names elements that stick out of the page, beyond boxes that scroll by themselves.
function sideways() {
  const width = document.documentElement.clientWidth
  const out = []
  if (document.documentElement.scrollWidth > width) out.push(`page is ${document.documentElement.scrollWidth} wide of ${width}`)
  for (const e of document.querySelectorAll('main *, header *, footer *')) {
    if (e.closest('.scroll') && !matchMedia('print').matches) continue
    if (e.closest('svg') && e.tagName !== 'svg') continue
    const box = e.getBoundingClientRect()
    if (box.width > 0 && box.right > width + 1) out.push(`<${e.tagName.toLowerCase()} class="${e.getAttribute('class') ?? ''}"> ends at ${Math.round(box.right)} of ${width}: ${e.textContent.slice(0, 40)}`)
  }
  for (const t of document.querySelectorAll('svg text')) {
    const box = t.getBoundingClientRect()
    if (box.right > width + 1) out.push(`text of a drawing ends at ${Math.round(box.right)} of ${width}: ${t.textContent.slice(0, 40)}`)
  }
  return out.slice(0, 5)
}

// foreign names what hostile text could have made of the page.
function foreign() {
  const out = []
  for (const e of document.querySelectorAll('script, iframe, img, object, embed, form, base, [onerror], [onload], [onclick]')) out.push(e.outerHTML.slice(0, 120))
  for (const a of document.querySelectorAll('a[href]')) if (!/^(https?:|#|(\.\.\/)?checklist\.html)/.test(a.getAttribute('href'))) out.push(a.outerHTML.slice(0, 120))
  if (/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200b\u200e\u200f\u202a-\u202e\u2066-\u2069]/.test(document.body.innerText)) out.push('control or direction characters in the text')
  return out
}

function hiddenOnPaper() {
  const out = []
  for (const d of document.querySelectorAll('details')) {
    for (const e of d.querySelectorAll('pre, td, p')) {
      if (!e.checkVisibility({ contentVisibilityAuto: true }) || e.getBoundingClientRect().height === 0) { out.push(d.textContent.trim().slice(0, 60)); break }
    }
  }
  for (const e of document.querySelectorAll('.scroll, pre')) if (e.scrollWidth > e.clientWidth + 1 && getComputedStyle(e).overflowX !== 'visible') out.push(`clipped: ${e.textContent.trim().slice(0, 60)}`)
  return out.slice(0, 5)
}

async function look(file, colorScheme, width) {
  const context = await browser.newContext({ colorScheme, viewport: { width, height: 900 } })
  const page = await context.newPage()
  const said = [], asked = []
  page.on('console', m => said.push(`${m.type()}: ${m.text()}`))
  page.on('pageerror', e => said.push(`error: ${e.message}`))
  page.on('dialog', d => { said.push(`dialog: ${d.message()}`); d.dismiss() })
  page.on('request', r => { if (!/^(file|data):/.test(r.url())) asked.push(r.url()) })
  await page.goto(pathToFileURL(join(folder, file)).href)
  const result = { file, colorScheme, width, console: said, requests: asked, sideways: await page.evaluate(sideways), foreign: await page.evaluate(foreign) }
  const rules = await page.evaluate(`${axe}; axe.run(document, { resultTypes: ['violations'] })`)
  result.axe = rules.violations.map(v => `${v.id}: ${v.nodes.length}: ${v.nodes[0].html.slice(0, 160)}: ${v.nodes[0].failureSummary.slice(0, 240)}`)
  result.rules = rules.passes.length
  if (shots) await page.screenshot({ path: join(shots, `${file.replace('.html', '')}-${colorScheme}-${width}.png`), fullPage: file !== 'large.html' })
  await context.close()
  return result
}

async function print(file) {
  const context = await browser.newContext({ viewport: { width: paper, height: 1050 } })
  const page = await context.newPage()
  await page.goto(pathToFileURL(join(folder, file)).href)
  await page.emulateMedia({ media: 'print' })
  const result = { file, paper: true, sideways: await page.evaluate(sideways), hidden: await page.evaluate(hiddenOnPaper) }
  const pdf = await page.pdf({ preferCSSPageSize: true, path: shots ? join(shots, file.replace('.html', '.pdf')) : undefined })
  result.pdf = pdf.subarray(0, 5).toString()
  result.pages = (pdf.toString('latin1').match(/\/Type\s*\/Page\b/g) ?? []).length
  if (shots && file !== 'large.html') await page.screenshot({ path: join(shots, `${file.replace('.html', '')}-print.png`), fullPage: true })
  await context.close()
  return result
}

const results = []
for (const file of readdirSync(folder).filter(f => f.endsWith('.html')).sort()) {
  for (const colorScheme of ['light', 'dark']) for (const width of [narrow, wide]) results.push(await look(file, colorScheme, width))
  results.push(await print(file))
}
await browser.close()
console.log(JSON.stringify(results, null, 1))
