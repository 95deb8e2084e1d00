import type { Page } from 'playwright-core'
import { expect, it } from 'vitest'
import { WORDS } from '../../src/browser/login-page.ts'
import { useBrowser } from '../page/browser.ts'
import { realClock } from '../support/clock.ts'
import { logInAs, makeNames, PAGE_PASSWORD, pagePasswordFile } from '../support/passwords.ts'
import { type SidecarOptions, startSidecar as startOnClock, type TestSidecar } from '../support/sidecar.ts'
import { startWithLogin } from './browsing.ts'
import { expectReadable, expectTabOrder, layoutFaults, NARROW, setTextSize } from './readable.ts'

const openPage = useBrowser()

/** The sidecar sends the live page a point each second. */
const startSidecar = (options: SidecarOptions = {}): Promise<TestSidecar> =>
  startOnClock({ clock: realClock(), ...options })

const LONG = 'n'.repeat(32)

/** A live page with long names, a device that is down, and refused requests with long paths. */
async function startTroubled() {
  const names = makeNames({ admin: undefined, [LONG]: 'read' })
  const sidecar = await startSidecar({
    machine: () => ({ names: [`${'gateway-'.repeat(8)}17`], addresses: [] }),
    config: {
      ...names.config,
      admin: { password_file: pagePasswordFile() },
      // The window of an hour is still open when the page is.
      limits: { api: { requests: 60, window: '1h' } },
      upstream: { health: { path: '/', interval: '100ms' } },
    },
  })
  const token = (await logInAs(sidecar, LONG)).access_token
  await logInAs(sidecar, 'admin')
  for (let i = 0; i < 62; i++) await sidecar.request({ path: `/api/${'long'.repeat(30)}/${i}`, token })
  await sidecar.device.stop()
  return sidecar
}

it('H329 the live page, its login and its dialogs fit 320 px and text of 200 %, axe finds nothing, and the tree has the order of the page', async () => {
  const sidecar = await startTroubled()
  const page = await openPage(`${sidecar.adminUrl}/`, { bypassCSP: true, viewport: NARROW })
  await expectReadable(page, 'login')
  await page.getByLabel('Password of this page').fill('wrong')
  await page.keyboard.press('Enter')
  await page.getByText('Wrong password.').waitFor()
  expect(await describedBy(page)).toBe('Wrong password.')
  await expectReadable(page, 'login, wrong')
  await page.getByLabel('Password of this page').fill(PAGE_PASSWORD)
  await page.keyboard.press('Enter')
  await page.getByRole('link', { name: 'More: PosternDeviceDown' }).waitFor()
  await page.locator('#limits').getByText('refused, free in').waitFor()
  await page.locator('#requests button').first().waitFor()
  await expect.poll(() => page.locator('#grant-rows tr').count()).toBe(2)
  await page.getByText('As a table').first().click()
  await expectReadable(page, 'page')
  // Nothing moves, so `prefers-reduced-motion` has nothing to stop.
  expect(await page.evaluate('document.getAnimations().length')).toBe(0)
  expect(await outlineOf(page)).toEqual(OUTLINE)
  await page.locator('#grant-rows button').first().click()
  await expectReadable(page, 'revocation')
  await page.keyboard.press('Escape')
  await page.locator('#requests button').first().click()
  await page.getByRole('dialog').getByText('rate-limited').waitFor()
  await expectReadable(page, 'explanation')
})

/** What a screen reader says of the element with the focus, after its name. A browser may set the focus after it has shown the page. */
async function describedBy(page: Page): Promise<string | null> {
  const id = await page.locator('[aria-describedby]:focus').getAttribute('aria-describedby')
  return page.locator(`#${id}`).textContent()
}

/** The headings and landmarks, as a screen reader lists them. */
const OUTLINE = [
  ...['banner', '1 Postern', 'main'],
  ...['2 Alarms', '2 Now', '2 Last minutes', '3 Requests per second', '3 Latency', '3 Load of the device'],
  ...['2 Device', '2 At the limit', '3 API', '3 /oauth/token', '2 Tokens and keys', '2 Logins', '2 Timeline'],
  '2 Last refused requests',
]

async function outlineOf(page: Page): Promise<readonly string[]> {
  const tree = await page.locator('body').ariaSnapshot()
  return [...tree.matchAll(/^ *- (?:(banner|main):|heading "(.*?)(?: \d+)?" \[level=(\d)\])/gm)].map(
    ([, landmark, title, level]) =>
      landmark ?? `${level} ${title?.startsWith('gateway-') ? 'Postern' : title}`,
  )
}

it('H329 the page of the alerts, and that of a page that is off, fit 320 px and text of 200 %', async () => {
  const { adminUrl } = await startSidecar({ config: { admin: { address: '0.0.0.0:0' } } })
  const page = await openPage(`${adminUrl.replace('0.0.0.0', '127.0.0.1')}/`, { bypassCSP: true })
  await page.getByText('Set admin.password_file to a file with one').waitFor()
  expect(await layoutFaults(page)).toEqual([])
  const on = await startSidecar()
  await page.goto(`${on.adminUrl}/page/alerts`)
  await expectReadable(page, 'alerts')
})

it('H329 a screen reader is told of changes only, not of each second', async () => {
  const sidecar = await startSidecar()
  const page = await openPage(`${sidecar.adminUrl}/`)
  await page.locator('#status-text').getByText('Ready', { exact: true }).waitFor()
  await sidecar.grant()
  await expect.poll(() => page.locator('#grant-rows tr').count()).toBe(1)
  await page.evaluate(`(() => {
    window.told = []
    for (const region of document.querySelectorAll('[role=status], [role=alert], [aria-live]'))
      new MutationObserver(() => window.told.push(region.id + ': ' + region.textContent)).observe(region, { childList: true, characterData: true, subtree: true })
  })()`)
  const time = page.locator('#legend-traffic .when')
  const seconds = new Set<string | null>()
  const token = await sidecar.token()
  await expect
    .poll(async () => {
      await sidecar.request({ token })
      return seconds.add(await time.textContent()).size
    })
    .toBeGreaterThan(4)
  expect(await page.evaluate('window.told')).toEqual([])
  await sidecar.device.stop()
  await expect.poll(async () => (await sidecar.request({ token })).status).toBe(500)
  await expect.poll(() => page.evaluate<string>('window.told.join()')).toContain('Device down')
})

it('H330 the Tab key opens the explanation of each figure, within the window, at 320 px with text of 200 %, too', async () => {
  const sidecar = await startSidecar()
  const page = await openPage(`${sidecar.adminUrl}/`, { bypassCSP: true, viewport: NARROW })
  await page.locator('#status-text').getByText('Ready', { exact: true }).waitFor()
  await page.locator('#chart-load').waitFor()
  try {
    await setTextSize(page, 32)
    const terms = page.locator('[aria-describedby^=why-]').filter({ visible: true })
    expect(await terms.count()).toBeGreaterThan(20)
    for (const term of await terms.all()) {
      const id = await term.getAttribute('aria-describedby')
      await expect
        .poll(
          async () => {
            // A scroll of the page that ends late may close what was open: the Tab key opens it again.
            await term.blur()
            await term.focus()
            return page.evaluate<boolean>(`(() => {
          const box = document.getElementById(${JSON.stringify(id)}).getBoundingClientRect()
          return box.width > 0 && box.left >= 0 && box.right <= innerWidth && box.top >= 0 && box.bottom <= innerHeight
        })()`)
          },
          { message: String(id) },
        )
        .toBe(true)
    }
  } finally {
    await setTextSize(page, 16)
  }
})

it('H329 the login page fits 320 px and text of 200 % in each language, with each message, and is used by keyboard', async () => {
  const realm = `${'Kesselhaus-'.repeat(6)}Ost`
  const sidecar = await startWithLogin({ transport: 'h2', config: { realm } })
  const page = await openPage(sidecar.url, { ignoreHTTPSErrors: true, bypassCSP: true, viewport: NARROW })
  for (const [language, words] of Object.entries(WORDS)) {
    await page.setExtraHTTPHeaders({ 'Accept-Language': language })
    await page.goto(`${sidecar.url}/settings`)
    await expectReadable(page, language)
    expect(await expectTabOrder(page)).toEqual([words.password, words.login])
    await page.locator('#password').fill('wrong')
    await page.keyboard.press('Enter')
    await page.getByRole('alert').waitFor()
    expect(await describedBy(page)).toBe(words.wrong)
    await expectReadable(page, `${language}, wrong`)
    await page.goto(`${sidecar.url}/oauth/logout`)
    await expectReadable(page, `${language}, log-out`)
    expect(await expectTabOrder(page)).toEqual([words.login])
  }
})

it('H330 each action of the live page is done by keyboard, the focus is seen at each stop, and comes back', async () => {
  const sidecar = await startTroubled()
  const page = await openPage(`${sidecar.adminUrl}/`)
  expect(await expectTabOrder(page)).toEqual(['Password of this page', 'Sign in'])
  await page.getByLabel('Password of this page').fill(PAGE_PASSWORD)
  await page.keyboard.press('Enter')
  await page.getByRole('link', { name: 'More: PosternDeviceDown' }).waitFor()
  await page.locator('#requests button').nth(1).waitFor()
  await expect.poll(() => page.locator('#grant-rows tr').count()).toBe(2)
  const stops = await expectTabOrder(page)
  const others = stops.filter((stop) => !stop.startsWith('More: '))
  expect(others.slice(0, 4)).toEqual(['Skip to the figures', 'Sign out', 'Requests/s', 'Refused/s'])
  expect(stops).toEqual(
    expect.arrayContaining(['5 min', 'Revoke all', 'Id of a request', 'Filter the logins by client or id']),
  )

  const focused = (name: string) =>
    page
      .evaluate(`document.activeElement?.ariaLabel ?? document.activeElement?.textContent`)
      .then((text) => expect(text).toContain(name))
  await page.getByRole('radio', { name: '5 min', exact: true }).focus()
  await page.keyboard.press('ArrowRight')
  expect(await page.getByLabel('15 min').isChecked()).toBe(true)
  await page.getByRole('button', { name: 'Client', exact: true }).focus()
  await page.keyboard.press('Enter')
  await page
    .getByRole('columnheader', { name: 'Client' })
    .and(page.locator('[aria-sort=ascending]'))
    .waitFor()
  await page.getByLabel('Filter the logins').focus()
  await page.keyboard.type('admin')
  await page.getByRole('status').getByText('1 login found', { exact: true }).waitFor()
  await page.keyboard.type('xx')
  await page.getByRole('status').getByText('No login found', { exact: true }).waitFor()
  await page.getByLabel('Filter the logins').fill('')

  const [revoke] = await page.getByRole('button', { name: /^Revoke the login/ }).all()
  const label = (await revoke?.getAttribute('aria-label')) ?? ''
  await revoke?.focus()
  await page.keyboard.press('Enter')
  await page.getByRole('dialog').waitFor()
  await page.keyboard.press('Escape')
  await focused(label)
  await page.getByRole('button', { name: 'Sign out' }).focus()
  await page.keyboard.press('Enter')
  await page.getByLabel('Password of this page').waitFor()
})
