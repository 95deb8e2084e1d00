import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { unitFlags } from '../../bench/program.ts'

it('the bench starts Node as the unit does', () => {
  const unit = readFileSync(join(import.meta.dirname, '../../deploy/postern.service'), 'utf8')
  const flags = unitFlags(unit)
  expect(flags).toContain('--permission')
  expect(flags).toContain('--allow-fs-write=/var/lib/postern')
  expect(flags.every((flag) => /^--[\w=/.-]+$/.test(flag))).toBe(true)
})

it('the bench does not guess what a unit that starts something else means', () => {
  expect(() => unitFlags('[Service]\nExecStart=/usr/bin/env bash\n')).toThrow('starts something else')
})
