//! Allows undefined Python symbols on platforms whose linker rejects them: the interpreter provides them.

fn main() {
    pyo3_build_config::add_extension_module_link_args();
}
