// Becomes dist/postern.mjs. Loads dist/main.cjs, with the code that V8 compiled when the bundle was made (*.cache): the
// sixth part of a start. Node's own cache of compiled code would have to be written by the user that runs the sidecar.
const { Module, createRequire } = process.getBuiltinModule('node:module')
const { existsSync, readFileSync } = process.getBuiltinModule('node:fs')
const { dirname } = process.getBuiltinModule('node:path')
const { Script, constants } = process.getBuiltinModule('node:vm')
const { crc32 } = process.getBuiltinModule('node:zlib')

/** A checksum of both stands before the code (bytes). */
const CHECKSUM = 4

/** What V8 compiled, if it is whole and of this very source. V8 itself checks its version and flags, but not that. */
function compiled(source, file) {
  if (!existsSync(`${file}.cache`)) return undefined
  const whole = readFileSync(`${file}.cache`)
  if (whole.length < CHECKSUM) return undefined
  const data = whole.subarray(CHECKSUM)
  return crc32(data, crc32(source)) === whole.readUInt32LE() ? data : undefined
}

/** Filled while the bundle is made, for `bundle.ts` to ask what was compiled. */
const scripts = globalThis[Symbol.for('postern.scripts')]

Module.prototype._compile = function compile(source, filename) {
  const cachedData = compiled(source, filename)
  const script = new Script(Module.wrap(source), {
    filename,
    ...(cachedData === undefined ? {} : { cachedData }),
    importModuleDynamically: constants.USE_MAIN_CONTEXT_DEFAULT_LOADER,
  })
  scripts?.set(filename, { script, source })
  const run = script.runInThisContext()
  run.call(this.exports, this.exports, createRequire(filename), this, filename, dirname(filename))
}

createRequire(import.meta.url)('./main.cjs')
