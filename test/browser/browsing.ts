import { expect } from 'vitest'
import type { Request, Response } from '../support/message.ts'
import {
  FORM_TYPE,
  PASSWORD,
  type SidecarOptions,
  startSidecar,
  type TestSidecar,
} from '../support/sidecar.ts'

/** What browsers send when the user opens an address. */
export const NAVIGATION: readonly string[] = ['Sec-Fetch-Mode', 'navigate', 'Sec-Fetch-Site', 'none']
/** What they send when a page of the address loads a file. */
export const FROM_PAGE: readonly string[] = ['Sec-Fetch-Mode', 'cors', 'Sec-Fetch-Site', 'same-origin']

export const SESSION = /^__Host-postern=([\w-]{43}); Path=\/; Secure; HttpOnly; SameSite=Strict$/

/** Starts a sidecar with `browser.login`. */
export function startWithLogin({ config = {}, ...options }: SidecarOptions = {}): Promise<TestSidecar> {
  return startSidecar({ ...options, config: { browser: { login: 'on' }, ...config } })
}

/** Sends the form of the login page, as a browser does. */
export function submitLogin(
  sidecar: Pick<TestSidecar, 'request'>,
  { password = PASSWORD, to = '/', ...request }: Request & { password?: string; to?: string } = {},
): Promise<Response> {
  return sidecar.request({
    method: 'POST',
    path: `/oauth/login?to=${encodeURIComponent(to)}`,
    body: new URLSearchParams({ password }).toString(),
    ...request,
    fields: [
      'Content-Type',
      FORM_TYPE,
      ...(request.fields ?? ['Sec-Fetch-Mode', 'navigate', 'Sec-Fetch-Site', 'same-origin']),
    ],
  })
}

/** The `Cookie` field of a new session. */
export async function logIn(
  sidecar: Pick<TestSidecar, 'request'>,
  form: Parameters<typeof submitLogin>[1] = {},
): Promise<string> {
  const response = await submitLogin(sidecar, form)
  const [set = ''] = response.values('set-cookie')
  expect(set).toMatch(SESSION)
  return set.split(';', 1)[0] ?? ''
}
