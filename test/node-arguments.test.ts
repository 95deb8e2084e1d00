import { expect, it } from 'vitest'
import { imageArguments, unitArguments } from '../deploy/node-arguments.ts'
import { shippedUnitArguments } from './support/shipped.ts'

it('the arguments for bench and tests are those of the unit', () => {
  const args = shippedUnitArguments({ program: '/a', configuration: '/b', state: '/c' })
  expect(args).toContain('--permission')
  expect(args).toContain('--allow-fs-read=/b')
  expect(args).toContain('--allow-fs-write=/c')
  expect(args.at(-1)).toBe('/a/dist/postern.mjs')
  expect(args.slice(0, -1).every((flag) => /^--[\w=/.-]+$/.test(flag))).toBe(true)
})

it.each([
  ['a shell', 'ExecStart=/usr/bin/env bash'],
  ['another program', 'ExecStart=/usr/bin/env node --permission /opt/other.mjs serve --config /etc/x'],
  ['another command', 'ExecStart=/usr/bin/env node /opt/postern/dist/postern.mjs demo'],
])('a unit that starts %s is refused', (_what, line) => {
  expect(() => unitArguments(`[Service]\n${line}\n`)).toThrow(
    'ExecStart does not start postern.mjs with Node',
  )
})

it('an image that starts something else is refused', () => {
  expect(() => imageArguments('ENTRYPOINT ["sh", "-c", "true"]\n')).toThrow('ENTRYPOINT does not start Node')
})
