import { mkdirSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import process from 'node:process'
import { chromium } from 'playwright-core'
import { closeAll } from '../support/cleanup.ts'
import { startPageServer } from '../support/page-server.ts'
import { chromiumPath } from './browser.ts'

// `node test/page/screenshots.ts [FOLDER]` makes the pictures of README.md, in docs/images.

const FOLDER = resolve(process.argv[2] ?? join(import.meta.dirname, '../../docs/images'))
const VIEWS = {
  phone: { viewport: { width: 360, height: 800 }, deviceScaleFactor: 2 },
  desktop: { viewport: { width: 1440, height: 1000 }, deviceScaleFactor: 1 },
}

mkdirSync(FOLDER, { recursive: true })
const now = Date.now()
const server = await startPageServer({
  grants: 34,
  condition: {
    certificate: { from: now - 80 * 86_400_000, until: now + 9.4 * 86_400_000, selfSigned: false },
  },
})
const browser = await chromium.launch({ executablePath: chromiumPath(), args: ['--no-sandbox'] })
for (const colorScheme of ['light', 'dark'] as const) {
  for (const [name, view] of Object.entries(VIEWS)) {
    const page = await browser.newPage({ colorScheme, ...view })
    page.on('console', (message) => console.error(message.text()))
    page.on('pageerror', (error) => console.error(error))
    await page.goto(server.url)
    await page.getByText('Ready', { exact: true }).waitFor()
    await page.waitForTimeout(1_500)
    const devtools = await page.context().newCDPSession(page)
    const { data } = await devtools.send('Page.captureScreenshot', { format: 'webp', quality: 85 })
    writeFileSync(join(FOLDER, `page-${name}-${colorScheme}.webp`), Buffer.from(data, 'base64'))
    await page.close()
  }
}
await browser.close()
await closeAll()
