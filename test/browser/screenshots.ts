import { writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import process from 'node:process'
import type { Page } from 'playwright-core'
import { DESKTOP, launchChromium, PHONE } from '../page/browser.ts'
import { closeAll } from '../support/cleanup.ts'
import { PASSWORD } from '../support/sidecar.ts'
import { startWithLogin } from './browsing.ts'
import { startSyncthing } from './interfaces.ts'

// `node test/browser/screenshots.ts [FOLDER]` makes two pictures of docs/browsers.md, in docs/images: the login page on a phone, and behind it
// the web interface of Syncthing.

const FOLDER = resolve(process.argv[2] ?? join(import.meta.dirname, '../../docs/images'))
const upstream = { host: 'target' }
const sidecar = await startWithLogin({
  device: await startSyncthing(),
  transport: 'h2',
  config: { realm: 'Storage, rack 3', browser: { login: 'on' }, upstream },
})
const browser = await launchChromium()

async function take(page: Page, name: string): Promise<void> {
  const devtools = await page.context().newCDPSession(page)
  const { data } = await devtools.send('Page.captureScreenshot', { format: 'webp', quality: 80 })
  writeFileSync(join(FOLDER, `${name}.webp`), Buffer.from(data, 'base64'))
}

for (const colorScheme of ['light', 'dark'] as const) {
  const viewport = { width: PHONE.width, height: 480 }
  const page = await browser.newPage({ ignoreHTTPSErrors: true, colorScheme, viewport, deviceScaleFactor: 2 })
  await page.goto(sidecar.url)
  await take(page, `login-${colorScheme}`)
  if (colorScheme === 'light') {
    await page.setViewportSize({ width: DESKTOP.width / 1.5, height: 600 })
    await page.getByLabel('Password').fill(PASSWORD)
    await page.keyboard.press('Enter')
    await page.locator('#device-this').waitFor()
    const note = page.getByText('OK', { exact: true }).filter({ visible: true })
    await note.click()
    await note.waitFor({ state: 'detached' })
    await take(page, 'login-device')
  }
  await page.close()
}
await browser.close()
await closeAll()
