import { mkdirSync } from 'node:fs'
import { join, resolve } from 'node:path'
import process from 'node:process'
import { chromium } from 'playwright-core'
import { closeAll } from '../support/cleanup.ts'
import { calm, startPageServer } from '../support/page-server.ts'
import { chromiumPath } from './browser.ts'

// `node test/page/screenshots.ts [FOLDER]` makes the pictures of README.md, in docs/images.

const FOLDER = resolve(process.argv[2] ?? join(import.meta.dirname, '../../docs/images'))
const VIEWS = {
  phone: { width: 360, height: 800 },
  tablet: { width: 768, height: 1024 },
  desktop: { width: 1440, height: 1000 },
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
  for (const [name, viewport] of Object.entries(VIEWS)) {
    const page = await browser.newPage({ colorScheme, viewport, deviceScaleFactor: 1 })
    page.on('console', (message) => console.error(message.text()))
    page.on('pageerror', (error) => console.error(error))
    await page.goto(server.url)
    await page.getByText('Ready', { exact: true }).waitFor()
    await page.waitForTimeout(1_500)
    const path = join(FOLDER, `page-${name}-${colorScheme}.png`)
    await page.screenshot({ path, fullPage: process.argv[3] === 'full' })
    await page.close()
  }
}
await browser.close()
await closeAll()
void calm
