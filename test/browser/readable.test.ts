import { expect, it } from 'vitest'
import { WORDS } from '../../src/oauth/login-page.ts'
import { useBrowser } from '../page/browser.ts'
import { logInAs, makeNames } from '../support/names.ts'
import { PAGE_PASSWORD, pagePasswordFile } from '../support/page-login.ts'
import { startSidecar } from '../support/sidecar.ts'
import { startWithLogin } from './browsing.ts'
import { expectReadable, expectTabOrder, layoutFaults, NARROW } from './readable.ts'

const openPage = useBrowser()

const LONG = 'n'.repeat(32)

/** A live page with long names, a device that is down, and refused requests with long paths. */
async function startTroubled() {
  const names = makeNames({ admin: undefined, [LONG]: 'read' })
  const sidecar = await startSidecar({
    documentedLimits: true,
    machine: () => ({ names: [`${'gateway-'.repeat(8)}17`], addresses: [] }),
    config: {
      ...names.config,
      admin: { password_file: pagePasswordFile() },
      upstream: { health: { path: '/', interval: '100ms' } },
    },
  })
  const token = (await logInAs(sidecar, LONG)).access_token
  await logInAs(sidecar, 'admin')
  for (let i = 0; i < 62; i++) await sidecar.request({ path: `/api/${'long'.repeat(30)}/${i}`, token })
  await sidecar.device.stop()
  return sidecar
}

it('H432 the live page, its login and its dialogs fit 320 px and text of 200 %, axe finds nothing, and the tree has the order of the page', async () => {
  const sidecar = await startTroubled()
  const page = await openPage(`${sidecar.adminUrl}/`, { bypassCSP: true, viewport: NARROW })
  await expectReadable(page, 'login')
  await page.getByLabel('Password of this page').fill('wrong')
  await page.keyboard.press('Enter')
  await page.getByText('Wrong password.').waitFor()
  await expectReadable(page, 'login, wrong')
  await page.getByLabel('Password of this page').fill(PAGE_PASSWORD)
  await page.keyboard.press('Enter')
  await page.getByRole('link', { name: 'More: PosternDeviceDown' }).waitFor()
  await page.locator('#limits').getByText('refused, free in').waitFor()
  await page.locator('#requests button').first().waitFor()
  await expect.poll(() => page.locator('#grant-rows tr').count()).toBe(2)
  await page.getByText('As a table').first().click()
  await expectReadable(page, 'page')
  expect(await page.evaluate('document.getAnimations().length')).toBe(0)
  await page.locator('#grant-rows button').first().click()
  await expectReadable(page, 'revocation')
  await page.keyboard.press('Escape')
  await page.locator('#requests button').first().click()
  await page.getByRole('dialog').getByText('rate-limited').waitFor()
  await expectReadable(page, 'explanation')
})

it('H432 the login page fits 320 px and text of 200 % in each language, with each message, and is used by keyboard', async () => {
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
    expect(await layoutFaults(page), `${language}, wrong`).toEqual([])
    await expectReadable(page, `${language}, wrong`)
    await page.goto(`${sidecar.url}/oauth/logout`)
    await expectReadable(page, `${language}, log-out`)
    expect(await expectTabOrder(page)).toEqual([words.login])
  }
})

it('H433 each action of the live page is done by keyboard, the focus is seen at each stop, and comes back', async () => {
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
