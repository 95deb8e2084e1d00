import { expect } from 'vitest'
import { shellBlock } from '../support/pages.ts'
import type { Operator } from './equipment.ts'

const STORE = shellBlock('docs/fleet.md', 'appendonly yes')

const SHARED = `
tokens: {store: "valkey://postern@127.0.0.1:6379"}
store: {password_file: /etc/postern/store-password}
`

/** Sets up a store by the commands of the page, has the installed service use it, and goes back to the configuration of before. */
export async function useStore({ type, ask, logIn }: Operator): Promise<void> {
  await type('cp -a /etc/postern/postern.yaml .')
  await type(STORE)
  await type(`sed -i '/^tokens:/,/^$/d' /etc/postern/postern.yaml; cat >> /etc/postern/postern.yaml`, SHARED)
  await type('systemctl restart postern')
  const token = await logIn()
  expect(await ask(token)).toBe('device\n200')
  expect(await type('curl -sS http://127.0.0.1:9464/metrics | grep ^postern_store_up')).toBe(
    'postern_store_up 1\n',
  )
  await type('cp -a postern.yaml /etc/postern/postern.yaml && systemctl restart postern')
  // The token was in the store only.
  expect(await ask(token)).toMatch(/401$/)
  await type(
    'apt-get purge -y --autoremove redis-server && rm -rf /etc/redis && (! id redis || deluser redis)',
  )
  await type('rm postern.yaml')
  expect(await type('systemctl is-active postern')).toBe('active\n')
}
