import { expect, it } from 'vitest'
import { typedProgram } from '../../src/commands/typed-program.ts'

it.each<[where: string, start: Parameters<typeof typedProgram>[0], typed: string]>([
  ['a checkout', { argv0: 'node', script: '/home/jo/postern/src/main.ts', env: {} }, 'npm run -s postern --'],
  ['the executable in this folder', { argv0: './postern', script: undefined, env: {} }, './postern'],
  [
    'one in a folder with a blank',
    { argv0: '/my tools/postern', script: undefined, env: {} },
    "'/my tools/postern'",
  ],
  ['the Debian package', { argv0: 'postern', script: undefined, env: {} }, 'postern'],
  [
    'the npm package, installed globally',
    { argv0: 'node', script: '/usr/local/bin/postern', env: {} },
    'postern',
  ],
  [
    'npx',
    { argv0: 'node', script: '/x/node_modules/.bin/postern', env: { npm_command: 'exec' } },
    'npx postern',
  ],
  ['a bundle', { argv0: 'node', script: '/x/dist/postern.mjs', env: {} }, 'node /x/dist/postern.mjs'],
])('H230 in %s, the commands that init prints begin as they are typed there', (_where, start, typed) => {
  expect(typedProgram(start)).toBe(typed)
})
