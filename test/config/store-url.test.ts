import { describe, expect, it } from 'vitest'
import { neededPermissions, secretFiles } from '../../src/config/files.ts'
import { effectiveYaml, load } from './sources.ts'

describe('the URL of a shared store', () => {
  it.each([
    ['rediss://user:hunter2@h/1', 'rediss://user:***@h/1'],
    ['valkey://:hunter2@[::1]:7000', 'valkey://:***@[::1]:7000'],
    ['valkey+unix://u:hunter2%40@/run/v', 'valkey+unix://u:***@/run/v'],
    ['valkey://user@h:1', 'valkey://user@h:1'],
  ])('%s is shown with its password masked, and loads again', (url, shown) => {
    const page = effectiveYaml({ sets: [`tokens.store=${url}`] })
    expect(page).toContain(`  store: ${shown}\n`)
    expect(page).not.toContain('hunter2')
    expect(effectiveYaml({ file: page })).toBe(page)
  })

  it('comes with files that the sidecar has to read', () => {
    const sets = ['tokens.store=rediss://user@h', 'store.password_file=/p', 'store.tls.ca=/ca.pem']
    const config = load({ sets })
    expect(secretFiles(config)).toContainEqual({ key: 'store.password_file', file: '/p' })
    for (const path of ['/p', '/ca.pem'])
      expect(neededPermissions(config)).toContainEqual({ path, kind: 'file', write: false })
  })
})
