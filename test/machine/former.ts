import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { temporaryDirectory } from '../support/certificate.ts'
import { run } from '../support/tools.ts'
import { madeOnce, PROCESSOR } from './made-once.ts'

const ROOT = join(import.meta.dirname, '../..')

/** The commits from which the tests upgrade. Both called themselves 0.1.0. */
export type Former = '27b4877' | 'e4e1b94c'

/** The configurations of a commit in `former/`, by name. Together they have every key of then; `alone` and `shared` are served. */
export function formerConfigurations(commit: Former): ReadonlyMap<string, string> {
  const folder = join(import.meta.dirname, 'former', commit)
  const files = readdirSync(folder).toSorted()
  return new Map(files.map((file) => [file.replace('.yaml', ''), readFileSync(join(folder, file), 'utf8')]))
}

/** A file as it was at a commit. */
export async function formerFile(commit: Former, path: string): Promise<string> {
  const { code, stdout, stderr } = await run('git', ['show', `${commit}:${path}`], { cwd: ROOT })
  if (code !== 0) throw new Error(`${stderr}\nThis checkout needs its history: git fetch --unshallow`)
  return stdout
}

/** The Debian package of a commit, made by the code of that commit with the npm packages of its lock file. */
export function formerPackage(commit: Former): Promise<string> {
  return madeOnce(`postern-${commit}.deb`, async (path) => {
    const clone = join(temporaryDirectory(), 'postern')
    const script = `
      git clone --quiet --no-checkout "$ROOT" "$CLONE" && cd "$CLONE" && git checkout --quiet "$COMMIT"
      npm ci --prefer-offline --no-audit --no-fund --silent
      "$NODE" -r ./src/node-version.cjs --input-type=module -e "$BUILD"
      mv postern_*.deb "$RESULT"`
    const { NPM_CONFIG_CACHE, PATH, HOME } = process.env
    const made = await run('sh', ['-ec', script], {
      env: {
        ...(NPM_CONFIG_CACHE === undefined ? {} : { NPM_CONFIG_CACHE }),
        ...{ PATH, HOME, ROOT, CLONE: clone, COMMIT: commit },
        ...{ NODE: process.execPath, BUILD: build(clone), RESULT: path, UV_USE_IO_URING: '0' },
      },
      timeout: 900_000,
    })
    if (made.code !== 0) throw new Error(`the package of ${commit}: ${made.stdout}${made.stderr}`)
  })
}

/** What `npm run release` of the commit does for one processor, with the quicker compression. */
function build(clone: string): string {
  return `
    const [{ makeBundle }, { makeExecutable }, { makeDebianPackage }] = await Promise.all(
      ['bundle', 'executable', 'debian'].map((name) => import('${clone}/deploy/build/' + name + '.ts')))
    await makeBundle('${clone}/dist')
    await makeExecutable('${clone}/dist', '${PROCESSOR}', '${clone}/postern')
    await makeDebianPackage({ executable: '${clone}/postern', processor: '${PROCESSOR}', version: '0.1.0',
      licences: '', time: 1700000000, folder: '${clone}', compression: 'gzip' })`
}
