"""How numba is made to compile kernels cheaply, and to trust what it is told about their memory.

numba optimises every function together with all that it calls, makes machine code of it, and does so again in whatever
calls it.  A part is only ever inlined into an entry point, or called from one.  So no machine code is made of it, and
only parts that call nothing, the innermost loops, are optimised by themselves; the entry point is optimised as a whole.

An entry point is told that its arrays do not overlap.  Then no loop has to find out, which takes a tenth of the time.

Both go through `pipeline_class`, which numba documents; what is behind it is private to numba.  Where that is not as
expected, the compilers are None and everything is compiled in the usual way, only slower.
"""

from __future__ import annotations

# mypy: disable-error-code="no-untyped-call"
from types import SimpleNamespace
from typing import Any

PartCompiler: Any = None
EntryCompiler: Any = None

try:
    from numba.core.codegen import JITCodeLibrary
    from numba.core.compiler import Compiler, CompilerBase, DefaultPassBuilder, Flags
    from numba.core.compiler_machinery import register_pass
    from numba.core.typed_passes import NativeLowering

    _OVERRIDDEN = ("_optimize_final_module", "_finalize_final_module", "_finalize_dynamic_globals")
    _known = all(hasattr(JITCodeLibrary, name) for name in _OVERRIDDEN) and hasattr(Flags, "noalias")
except ImportError:  # a numba whose inside differs
    _known = False

if _known:

    class PartLibrary(JITCodeLibrary):
        """Code that waits to be linked into an entry point."""

        def _optimize_final_module(self) -> None:
            if not self._linking_libraries:  # the innermost loops, which are quick to optimise
                super()._optimize_final_module()
                return
            passes, builder = self._codegen._module_pass_manager(
                loop_vectorize=False, slp_vectorize=False, opt=0, cost="cheap"
            )
            passes.run(self._final_module, builder)

        def _finalize_final_module(self) -> None:
            self._finalize_dynamic_globals()
            self._finalized = True

        def get_pointer_to_function(self, name: str) -> int:  # noqa: ARG002
            self._ensure_finalized()
            return 0  # as numba says of a function that cannot be called from Python

        @property
        def codegen(self) -> Any:
            """As numba wants it, but without a place for the environment: there is no machine code that has one."""
            return SimpleNamespace(set_env=lambda name, env: None)  # noqa: ARG005

    @register_pass(mutates_CFG=True, analysis_only=False)
    class _PartLowering(NativeLowering):
        _name = "evenhand_part_lowering"

        def run_pass(self, state: Any) -> bool:
            state.library = PartLibrary(state.targetctx.codegen(), state.func_id.func_qualname)
            state.library.enable_object_caching()
            return bool(super().run_pass(state))

    class _PartCompiler(CompilerBase):
        def define_pipelines(self) -> list[Any]:
            pipeline = DefaultPassBuilder.define_nopython_pipeline(self.state)
            pipeline.passes = [
                (_PartLowering if step is NativeLowering else step, *rest) for step, *rest in pipeline.passes
            ]
            pipeline._finalized = False
            pipeline.finalize()
            return [pipeline]

    PartCompiler = _PartCompiler

    class _EntryCompiler(Compiler):
        def define_pipelines(self) -> list[Any]:
            self.state.flags.noalias = True
            return list(super().define_pipelines())

    EntryCompiler = _EntryCompiler
