import { writeFileSync } from 'node:fs'
import { type BrowserContext, chromium, type Page } from 'playwright-core'
import { expect, it } from 'vitest'
import { chromiumPath, resting } from '../page/browser.ts'
import { closeLater } from '../support/cleanup.ts'
import { passUntil } from '../support/clock.ts'
import { type Device, startDevice } from '../support/device.ts'
import { PATIENCE } from '../support/running-test.ts'
import { PASSWORD, type TestSidecar } from '../support/sidecar.ts'
import { needs } from '../support/tools.ts'
import { startWithLogin } from './browsing.ts'

/** A device whose pages are kept by the browser: for a while in its cache, and for Back in its memory. */
function startCachedDevice(): Promise<Device> {
  return startDevice((request, response) => {
    response.setHeader('Content-Type', 'text/html')
    response.setHeader('Cache-Control', 'max-age=600')
    response.end(`<!doctype html><link rel="icon" href="data:,"><p>of the device: ${request.url}</p>
<form method="post" action="/oauth/logout"><button>Leave</button></form>`)
  })
}

/** Chromium as users have it: tests switch off the memory for Back otherwise. */
async function openBrowser(): Promise<BrowserContext> {
  needs('chromium')
  const ignoreDefaultArgs = ['--disable-back-forward-cache']
  const browser = await chromium.launch({
    executablePath: chromiumPath(),
    args: ['--no-sandbox'],
    ignoreDefaultArgs,
  })
  closeLater(() => browser.close())
  const context = await browser.newContext({ ignoreHTTPSErrors: true })
  context.setDefaultTimeout(PATIENCE)
  return context
}

async function open(context: BrowserContext, { url }: TestSidecar): Promise<Page> {
  const page = await context.newPage()
  await page.goto(`${url}/one`)
  if ((await page.locator('#password').count()) > 0) {
    await page.locator('#password').fill(PASSWORD)
    await page.keyboard.press('Enter')
    await page.getByText('of the device: /one').waitFor()
  }
  await page.goto(`${url}/two`)
  return page
}

/** What the pages show that Back leads to. */
async function backwards(page: Page, steps: number): Promise<string> {
  const shown: string[] = []
  await resting(page).waitFor()
  for (let step = 0; step < steps; step += 1) {
    await page.goBack({ waitUntil: 'commit' })
    shown.push(await resting(page).locator('main, p').first().innerText())
  }
  return shown.join('\n')
}

const ways: Readonly<Record<string, (page: Page, sidecar: TestSidecar) => Promise<void>>> = {
  'by the page of the logout': async (page, { url }) => {
    await page.goto(`${url}/oauth/logout`)
    await page.getByRole('button').click()
    await page.getByText('You are logged out.').waitFor()
  },
  'by a new password': async (page, sidecar) => {
    writeFileSync(sidecar.passwordFile, 'another\n')
    await passUntil(sidecar.clock, expect.poll(() => sidecar.metric('postern_tokens')).toBe(0))
    await page.goto(`${sidecar.url}/now`, { waitUntil: 'commit' })
    await page.waitForURL(`${sidecar.url}/oauth/login?to=%2Fnow&why=ended`)
  },
  'by a form of the device': async (page, { url }) => {
    await page.getByRole('button', { name: 'Leave' }).click()
    await page.getByText('You are logged out.').waitFor()
    await page.waitForURL(`${url}/oauth/logout`)
  },
}

for (const [way, leave] of Object.entries(ways)) {
  it(`H218 after the end of a session ${way}, neither Back nor the cache of Chromium shows a page of the device`, async () => {
    const sidecar = await startWithLogin({ transport: 'h2', device: await startCachedDevice() })
    const context = await openBrowser()
    const [page, other] = [await open(context, sidecar), await open(context, sidecar)]
    await other.goto('data:text/html,<p>elsewhere</p>')
    await page.bringToFront()
    await leave(page, sidecar)
    const known = sidecar.device.requests.length
    expect(await backwards(page, 2)).not.toContain('of the device')
    expect(await backwards(other, 2)).not.toContain('of the device')
    await page.goto(`${sidecar.url}/one`)
    await page.locator('#password').waitFor()
    expect(sidecar.device.requests.length).toBe(known)
  })
}
