import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { type Browser, type BrowserContextOptions, chromium, type Page } from 'playwright-core'
import { afterAll, afterEach, beforeAll, expect } from 'vitest'
import { closeLater } from '../support/cleanup.ts'
import { isInstalled, needs } from '../support/tools.ts'

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')

export const PHONE = { width: 360, height: 800 }
export const DESKTOP = { width: 1440, height: 1000 }

/** Debian's Chromium, from the PATH. Throws if it is not installed. */
export function chromiumPath(): string {
  return execFileSync('sh', ['-c', 'command -v chromium'], { encoding: 'utf8' }).trim()
}

/** Starts Chromium. Its own sandbox does not start as root, and the pages of these tests are the project's. */
export function launchChromium(): Promise<Browser> {
  return chromium.launch({ executablePath: chromiumPath(), args: ['--no-sandbox'] })
}

/** Chromium itself writes a line for each request that fails. */
const OF_CHROMIUM = /^Failed to load resource|net::ERR_/

/**
 * One browser for the tests of a file. Each test fails if a page writes to the console: errors, and violations of the CSP.
 * @param foreign the pages are those of other programs, which may write
 * @returns a function that opens a page in a profile of its own
 */
export function useBrowser({
  foreign = false,
} = {}): (url: string, options?: BrowserContextOptions) => Promise<Page> {
  let browser: Browser | undefined
  let written: string[] = []
  beforeAll(async () => {
    if (isInstalled('chromium')) browser = await launchChromium()
  })
  afterAll(() => browser?.close())
  afterEach(() => {
    const lines = written.filter((line) => !OF_CHROMIUM.test(line))
    written = []
    if (!foreign) expect(lines).toEqual([])
  })
  return async (url, options = {}) => {
    needs('chromium')
    const context = await (browser ?? expect.fail('beforeAll starts Chromium')).newContext(options)
    closeLater(() => context.close())
    const page = await context.newPage()
    page.on('console', (message) => written.push(message.text()))
    page.on('pageerror', (error) => written.push(error.message))
    await page.goto(url)
    return page
  }
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
