import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { type Browser, type BrowserContextOptions, chromium, type Locator, type Page } from 'playwright-core'
import { afterAll, afterEach, beforeAll, expect } from 'vitest'
import { closeLater } from '../support/cleanup.ts'
import { PATIENCE } from '../support/running-test.ts'
import { isInstalled, needs } from '../support/tools.ts'

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')

export const PHONE = { width: 360, height: 800 }
export const DESKTOP = { width: 1440, height: 1000 }
/** The size of a page that a test opens without another. */
const SIZE = { width: 1280, height: 720 }

/** Debian's Chromium, from the PATH. Throws if it is not installed. */
export function chromiumPath(): string {
  return execFileSync('sh', ['-c', 'command -v chromium'], { encoding: 'utf8' }).trim()
}

/** Starts Chromium. Its own sandbox does not start as root, and the pages of these tests are the project's. */
export function launchChromium(): Promise<Browser> {
  return chromium.launch({ executablePath: chromiumPath(), args: ['--no-sandbox'] })
}

/**
 * Chromium itself writes a line for each request that fails, for each cache that a response has it clear, and where a test types into a field
 * before the page is ready to focus it.
 */
const OF_CHROMIUM =
  /^Failed to load resource|net::ERR_|^Clear-Site-Data header|^Autofocus processing was blocked/

/** How a page is opened. What a `foreign` one writes is no failure: it is that of another program. */
type PageOptions = BrowserContextOptions & { readonly foreign?: boolean }

/**
 * One browser for the tests of a file, and one page for those that open it with the same options: a new page costs 0.7 s of
 * processor time. A test finds neither cookies nor other pages of the test before it, and each test has an address of its own.
 * Each test fails if a page writes to the console: errors, and violations of the CSP.
 * @returns a function that opens an address; a test may call it several times
 */
export function useBrowser(): (url: string, options?: PageOptions) => Promise<Page> {
  let browser: Browser | undefined
  let written: string[] = []
  const pages = new Map<string, Promise<Page>>()
  beforeAll(async () => {
    if (isInstalled('chromium')) browser = await launchChromium()
  })
  afterAll(() => browser?.close())
  afterEach(() => {
    const lines = written.filter((line) => !OF_CHROMIUM.test(line))
    written = []
    expect(lines).toEqual([])
  })
  async function newPage({ foreign = false, ...options }: PageOptions): Promise<Page> {
    const context = await (browser ?? expect.fail('beforeAll starts Chromium')).newContext(options)
    context.setDefaultTimeout(PATIENCE)
    const page = await context.newPage()
    if (foreign) return page
    page.on('console', (message) => written.push(message.text()))
    page.on('pageerror', (error) => written.push(error.message))
    return page
  }
  return async (url, { viewport = SIZE, colorScheme = 'light', ...options } = {}) => {
    needs('chromium')
    const page = await pages.getOrInsertComputed(JSON.stringify(options), () => newPage(options))
    closeLater(() => leave(page))
    await page.setViewportSize(viewport ?? SIZE)
    await page.emulateMedia({ colorScheme })
    await page.goto(url)
    return page
  }
}

/** Leaves the page as a new one is. */
async function leave(page: Page): Promise<void> {
  for (const other of page.context().pages()) if (other !== page) await other.close()
  await page.goto('about:blank')
  await page.setExtraHTTPHeaders({})
  await page.context().clearCookies()
}

/** A page that does not lead on by itself. One that does breaks off the next step, and takes what is typed with it. */
export function resting(page: Page): Locator {
  return page.locator('html:not(:has(meta[http-equiv="refresh"]))')
}

/** What axe-core finds wrong with the page as it is now. The page has to be opened with `bypassCSP`. */
export async function faultsOf(page: Page): Promise<string[]> {
  if (!(await page.evaluate('"axe" in window'))) await page.evaluate(AXE)
  return page.evaluate(async () => {
    // @ts-expect-error: `axe` is defined by the script above
    const { violations } = await axe.run()
    return violations.map(
      ({ id, nodes }: { id: string; nodes: { html: string }[] }) => `${id}: ${nodes[0]?.html}`,
    )
  })
}
